// Compares the tensors of a file with those that a model needs. Strict: no tensor remains random or
// is left out silently.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "onebit/data/formats/tensor_source.h"

namespace onebit::formats {

struct WantedTensor {
  std::string name;
  Shape shape;
};

// Differences that a load allows. A name is covered if it begins with one of the prefixes.
struct MatchRules {
  std::vector<std::string> may_lack;    // wanted, may be absent: a new task head ("qa_outputs.")
  std::vector<std::string> may_ignore;  // present, not wanted: another task's head ("cls.")
  // Wanted, and treated as absent even if the file has a tensor of this name: a head with other
  // labels.
  std::vector<std::string> replaced = {};
};

struct MatchReport {
  struct WrongShape {
    std::string name;
    Shape wanted, found;
  };
  std::vector<std::string> missing, unexpected;  // errors
  std::vector<WrongShape> wrong_shape;           // errors
  std::vector<std::string> lacking, ignored;     // covered by the rules: to be logged

  bool ok() const { return missing.empty() && unexpected.empty() && wrong_shape.empty(); }
  // Several lines naming every tensor of the first three lists (long lists are cut, with a count).
  std::string describe() const;
};

MatchReport match_tensors(std::span<const TensorEntry> found, std::span<const WantedTensor> wanted,
                          const MatchRules& rules);

// Returns the report if it is ok(). Error: it is not. The message is `place` and describe().
MatchReport require_match(const TensorSource& source, std::span<const WantedTensor> wanted,
                          const MatchRules& rules);

}  // namespace onebit::formats
