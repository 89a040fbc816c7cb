#include "onebit/data/corpus/data_json.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <optional>

#include "onebit/ground/base/error.h"
#include "onebit/ground/base/json.h"

namespace onebit::corpus {
namespace {

constexpr std::string_view kReplacement = "\\ufffd";
// The shortest number beyond a double is 1e309.
constexpr size_t kShortestOverflow = 5;

// Copies JSON and repairs it on the way.
class Repair {
 public:
  // `nan` is written for NaN, the only repair that may change the number of characters.
  Repair(std::string_view text, std::string_view nan) : text_(text), nan_(nan) {}

  std::string run() {
    while (at_ < text_.size()) {
      const char first = text_[at_];
      if (first == '"') {
        copy_string();
      } else if (take("NaN", nan_) || take("Infinity", "null    ") ||
                 take("-Infinity", "null     ")) {
        continue;
      } else if (first == '-' || (first >= '0' && first <= '9')) {
        copy_number();
      } else {
        copy(1);
      }
    }
    return std::move(result_);
  }

 private:
  void copy(size_t count) {
    const std::string_view part = text_.substr(at_, count);
    result_ += part;
    at_ += part.size();
  }

  bool take(std::string_view word, std::string_view replacement) {
    if (!text_.substr(at_).starts_with(word)) return false;
    result_ += replacement;
    at_ += word.size();
    return true;
  }

  void copy_number() {
    const size_t end = std::min(text_.find_first_not_of("0123456789+-.eE", at_ + 1), text_.size());
    const std::string number(text_.substr(at_, end - at_));
    if (number.size() >= kShortestOverflow && std::isinf(std::strtod(number.c_str(), nullptr))) {
      result_ += "null";
      result_.append(number.size() - 4, ' ');
      at_ = end;
    } else {
      copy(number.size());
    }
  }

  // The code unit of an escape \uXXXX at `begin`.
  std::optional<unsigned> unit_at(size_t begin) const {
    const std::string_view escape = text_.substr(std::min(begin, text_.size()), 6);
    if (escape.size() < 6 || !escape.starts_with("\\u")) return std::nullopt;
    unsigned unit = 0;
    const char* const end = escape.data() + escape.size();
    const auto [stop, error] = std::from_chars(escape.data() + 2, end, unit, 16);
    if (error != std::errc() || stop != end) return std::nullopt;
    return unit;
  }

  void copy_escape() {
    const std::optional<unsigned> unit = unit_at(at_);
    if (!unit || *unit < 0xD800 || *unit > 0xDFFF) return copy(2);
    const std::optional<unsigned> next = unit_at(at_ + 6);
    const bool is_pair = *unit < 0xDC00 && next && *next >= 0xDC00 && *next <= 0xDFFF;
    if (is_pair) return copy(12);
    result_ += kReplacement;
    at_ += kReplacement.size();
  }

  void copy_string() {
    copy(1);
    while (at_ < text_.size() && text_[at_] != '"') {
      if (text_[at_] == '\\') {
        copy_escape();
      } else {
        copy(std::min(text_.find_first_of("\"\\", at_), text_.size()) - at_);
      }
    }
    copy(1);
  }

  std::string_view text_, nan_;
  size_t at_ = 0;
  std::string result_;
};

}  // namespace

std::string repaired_json(std::string_view text) {
  return Repair(text, "null").run();
}

Json parse_data_json(std::string_view text, const std::string& source) {
  try {
    return parse_json(text, source);
  } catch (const Error&) {
    const std::string repaired = repaired_json(text);
    if (repaired == text) throw;
    try {
      return parse_json(repaired, source);
    } catch (const Error&) {
      // A value of the length of NaN keeps the places of errors.
      return parse_json(Repair(text, "{ }").run(), source);
    }
  }
}

}  // namespace onebit::corpus
