#include "onebit/data/text/casing.h"

#include <algorithm>

#include "onebit/data/text/vocabulary.h"

namespace onebit::text {
namespace {

bool has_letter(const std::string& token, char first, char last) {
  return std::any_of(token.begin(), token.end(),
                     [&](char letter) { return letter >= first && letter <= last; });
}

bool in_brackets(const std::string& token) {
  return token.size() > 2 && token.front() == '[' && token.back() == ']';
}

}  // namespace

const char* name_of(Casing casing) {
  switch (casing) {
    case Casing::kUncased:
      return "uncased";
    case Casing::kCased:
      return "cased";
    case Casing::kLowerCased:
      return "lower-cased";
  }
  return "";
}

CasingEvidence casing_of(const Vocabulary& vocabulary) {
  size_t with_capital = 0, latin = 0;
  for (int32_t id = 0; id < vocabulary.model_size(); ++id) {
    const std::string& token = vocabulary.token(id);
    if (in_brackets(token)) continue;
    const bool capital = has_letter(token, 'A', 'Z');
    with_capital += capital ? 1 : 0;
    latin += capital || has_letter(token, 'a', 'z') ? 1 : 0;
  }
  if (latin == 0) return CasingEvidence::kUnclear;
  if (with_capital == 0) return CasingEvidence::kUncased;
  return with_capital * 100 >= latin ? CasingEvidence::kCased : CasingEvidence::kUnclear;
}

}  // namespace onebit::text
