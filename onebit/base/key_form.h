// What the value of a recipe's key may be. One description serves the check of a value, the error
// message, the documentation and the JSON Schema.
#pragma once

#include <cstddef>
#include <limits>
#include <string>
#include <vector>

#include "onebit/base/json_fwd.h"

namespace onebit {

// Limits of a number; both ends belong to it unless they are open.
struct Limits {
  double least = -std::numeric_limits<double>::infinity();
  double most = std::numeric_limits<double>::infinity();
  bool open_least = false, open_most = false;

  constexpr Limits up_to(double end) const { return {least, end, open_least, false}; }
  constexpr Limits below(double end) const { return {least, end, open_least, true}; }
  bool contains(double value) const;
  bool is_one_value() const { return least == most; }
};
constexpr Limits at_least(double least) {
  return {.least = least};
}
constexpr Limits above(double least) {
  return {.least = least, .open_least = true};
}
constexpr Limits exactly(double value) {
  return {.least = value, .most = value};
}

enum class KeyType {
  kInteger,  // in `limits`, or one of `words`
  kNumber,   // in `limits`
  kBoolean,  // false is 0 and true is 1, of which `limits` may allow one alone
  kText,     // one of `words`, if there are any
  kNumbers,  // `length` numbers in `limits`
  kRate,     // a number in `limits`, or a list that repeats one
  kCounts,   // an object of whole numbers in `limits`
  kWeights,  // an object of numbers in `limits`, or one of `words`
  kTexts,    // a list of at least one string
  kOff,      // a section that must not be enabled
  kAnything,
  kNothing,  // the key is refused
  kSection,  // an object with keys of its own
};

struct KeyForm {
  KeyType type = KeyType::kAnything;
  Limits limits = {};
  std::vector<std::string> words = {};
  bool any_case = false;  // of the words
  size_t length = 0;

  // Whether the recipe has no choice: the key is known for the sake of configs that repeat it.
  bool is_fixed() const;
};

bool fits(const KeyForm& form, const Json& value);

// "a whole number of at least 1", "one of log, linear": what a value must be.
std::string describe(const KeyForm& form);

// The index of `word` in form.words; their number where it is none of them.
size_t index_of_word(const KeyForm& form, const std::string& word);

// In the words of JSON Schema, draft 2020-12. Empty for a section, whose keys its table lists.
Json schema_of(const KeyForm& form);

}  // namespace onebit
