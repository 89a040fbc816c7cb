#include "onebit/data/text/sentence_classes.h"

#include <unicode/uchar.h>

namespace onebit::text {

SentenceClasses::SentenceClasses(std::string_view language) : classes_(0x10000) {
  for (char32_t c = 0; c < classes_.size(); ++c) classes_[c] = of_high(c);
  if (language == "el") classes_[';'] = classes_[0x37E] = SentenceClass::kEnd;
}

SentenceClass SentenceClasses::of_high(char32_t code_point) {
  switch (u_getIntPropertyValue(static_cast<UChar32>(code_point), UCHAR_SENTENCE_BREAK)) {
    case U_SB_ATERM:
      return SentenceClass::kStop;
    case U_SB_STERM:
      return SentenceClass::kEnd;
    case U_SB_CLOSE:
      return SentenceClass::kClose;
    case U_SB_SCONTINUE:
      return SentenceClass::kContinue;
    case U_SB_EXTEND:
    case U_SB_FORMAT:
      return SentenceClass::kExtend;
    case U_SB_LOWER:
      return SentenceClass::kLower;
    case U_SB_UPPER:
      return SentenceClass::kUpper;
    case U_SB_OLETTER:
      return SentenceClass::kLetter;
    case U_SB_NUMERIC:
      return SentenceClass::kNumeric;
    case U_SB_SEP:
      return SentenceClass::kSeparator;
    case U_SB_SP:
    case U_SB_CR:
    case U_SB_LF:
      return SentenceClass::kSpace;
    default:
      return SentenceClass::kOther;
  }
}

}  // namespace onebit::text
