// The normalisers of Hugging Face's `tokenizers`: what a tokenizer does to a text before it splits
// it. Each step writes the text anew and keeps the origin of every byte, as the reference does.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "onebit/data/text/character_map.h"
#include "onebit/data/text/normal_form.h"

namespace onebit::text {

// A normal form of Unicode (Unicode Standard Annex 15): canonical or compatibility decomposition,
// without and with composition. As the reference, with the characters of Unicode 9. Later ones stay
// as they are.
enum class UnicodeForm { kNfc, kNfd, kNfkc, kNfkd };

// Lower case of each character, by Unicode's full mapping.
struct LowerCaseStep {};
// Leaves marks out.
struct StripAccentsStep {};
// Leaves white space out at the ends.
struct StripStep {
  bool left = true, right = true;
};
// Puts a text in front of one that is not empty.
struct PrependStep {
  std::string text;
};
// Replaces every occurrence of a text. If `is_run`, `pattern` is one character, and two or more of
// it in a row are one occurrence.
struct ReplaceStep {
  std::string pattern, content;
  bool is_run = false;
};
struct CharacterMapStep {
  std::shared_ptr<const CharacterMap> map;
};

using NormalizerStep = std::variant<UnicodeForm, LowerCaseStep, StripAccentsStep, StripStep,
                                    PrependStep, ReplaceStep, CharacterMapStep>;

class Normalizer {
 public:
  Normalizer() = default;
  explicit Normalizer(std::vector<NormalizerStep> steps) : steps_(std::move(steps)) {}

  // Normalises in place. `scratch` saves allocations.
  void apply(NormalizedText& text, NormalizedText& scratch) const;
  bool empty() const { return steps_.empty(); }

 private:
  std::vector<NormalizerStep> steps_;
};

// Replaces in the same way, for other steps that replace.
void replace_all(const NormalizedText& from, const ReplaceStep& step, NormalizedText& to);
// Puts `text` in front of bytes [begin, end) of `from`, which are appended as well.
void append_with_prefix(const NormalizedText& from, size_t begin, size_t end, std::string_view text,
                        NormalizedText& to);

}  // namespace onebit::text
