// Sentence_Break classes of characters (Unicode Standard Annex 29, table 4), from ICU.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

namespace onebit::text {

enum class SentenceClass : uint8_t {
  kOther,
  kSpace,      // Sp, and the line breaks CR and LF, which are white space within a paragraph
  kSeparator,  // Sep: always ends a sentence
  kLower,
  kUpper,
  kLetter,  // OLetter
  kNumeric,
  kStop,      // ATerm: the full stop, which may end an abbreviation
  kEnd,       // STerm: ! and ?
  kClose,     // quotes and brackets
  kContinue,  // SContinue: comma, colon, dash
  kExtend,    // Extend and Format: belongs to the preceding character
};

class SentenceClasses {
 public:
  // `language` changes individual characters: the Greek question mark ends sentences in "el".
  explicit SentenceClasses(std::string_view language);

  SentenceClass of(char32_t code_point) const {
    return code_point < classes_.size() ? classes_[code_point] : of_high(code_point);
  }

 private:
  static SentenceClass of_high(char32_t code_point);

  std::vector<SentenceClass> classes_;  // for the first 2^16 code points
};

}  // namespace onebit::text
