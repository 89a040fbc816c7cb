// Files and examples for the tests of this floor.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "onebit/classify/example_reader.h"
#include "tests/base/temporary_folder.h"

namespace onebit::classify {

class TextFiles {
 public:
  Path write(const std::string& name, std::string_view text) const {
    write_file_atomically(folder_ / name, text);
    return folder_ / name;
  }
  Path path(const std::string& name) const { return folder_ / name; }

 private:
  TemporaryFolder folder_;
};

inline Examples examples_of(const std::vector<Field>& labels) {
  Examples examples = {.source = "train.tsv"};
  for (size_t i = 0; i < labels.size(); ++i) {
    examples.all.push_back({.text = "text", .label = labels[i], .line = i + 2});
  }
  return examples;
}

inline Examples examples_of(const std::vector<std::string>& labels) {
  std::vector<Field> fields;
  for (const std::string& label : labels) fields.push_back({.text = label});
  return examples_of(fields);
}

}  // namespace onebit::classify
