// The pre-tokenizers of Hugging Face's `tokenizers`: how a normalised text is cut into the words
// that the model then splits into pieces.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "onebit/data/text/normal_form.h"

namespace onebit::text {

// GPT-2's: a word is a run of letters, of digits or of other characters with a blank before it, or
// white space. The model's symbols are bytes.
struct ByteLevelStep {
  bool adds_prefix_space = true;
  bool cuts = true;
};
// sentencepiece's: blanks become `replacement`, and a word begins at each of them.
struct MetaspaceStep {
  enum class Prefix { kNever, kFirst, kAlways };

  std::string replacement;  // one character
  Prefix prefix = Prefix::kAlways;
  bool cuts = true;
};
// Cuts at white space, which is left out.
struct WhitespaceStep {};
// Cuts at a text.
struct SplitStep {
  enum class Behavior { kRemoved, kIsolated, kMergedWithPrevious, kMergedWithNext, kContiguous };

  std::string pattern;
  Behavior behavior = Behavior::kIsolated;
  bool is_inverted = false;  // cuts at what lies between
};

using PreTokenizerStep = std::variant<ByteLevelStep, MetaspaceStep, WhitespaceStep, SplitStep>;

// A text and its words.
struct Words {
  using Range = std::pair<size_t, size_t>;

  explicit Words(bool has_origins) : text(has_origins) {}

  NormalizedText text;
  std::vector<Range> ranges;  // in bytes. None is empty
};

class PreTokenizer {
 public:
  PreTokenizer() = default;
  explicit PreTokenizer(std::vector<PreTokenizerStep> steps) : steps_(std::move(steps)) {}

  // Cuts words.text, which may change, into words. `scratch` saves allocations.
  void apply(Words& words, Words& scratch) const;

  bool has_byte_symbols() const;
  // Whether ByteLevel puts a blank before a text, or nothing if there is no ByteLevel.
  std::optional<bool> adds_prefix_space() const;
  // Whether a step depends on where a word begins in the original text.
  bool needs_origins() const;

 private:
  std::vector<PreTokenizerStep> steps_;
};

}  // namespace onebit::text
