// The table of a recipe's keys, as the readers of its sections have listed them (keys.h).
#pragma once

#include <cstddef>
#include <limits>
#include <list>
#include <string>
#include <string_view>
#include <vector>

#include "onebit/ground/base/json.h"
#include "onebit/ground/base/json_fwd.h"

namespace onebit {

// The form of a recipe key's value. The check of a value, the error message, the documentation and
// the JSON Schema are derived from one description.

// Limits of a number. Each end is included unless it is open.
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
  kBoolean,  // false counts as 0 and true as 1. `limits` may allow only one of them
  kText,     // one of `words`, if there are any
  kNumbers,  // `length` numbers in `limits`
  kRate,     // a number in `limits`, or a list that repeats one
  kCounts,   // an object of whole numbers in `limits`
  kWeights,  // an object of numbers in `limits`, or one of `words`
  kTexts,    // a list of at least one string
  kOff,      // a section that must not be enabled
  kAnything,
  kNothing,  // the key is refused
  kSection,  // an object with its own keys
};

struct KeyForm {
  KeyType type = KeyType::kAnything;
  Limits limits = {};
  std::vector<std::string> words = {};
  bool any_case = false;  // `words` match in any case
  size_t length = 0;

  // Whether only one value is allowed: the key is accepted for configs that state it anyway.
  bool is_fixed() const;
};

bool fits(const KeyForm& form, const Json& value);

// Describes the allowed values: "a whole number of at least 1", "one of log, linear".
std::string describe(const KeyForm& form);

// Returns the index of `word` in form.words, or form.words.size() if it is not among them.
size_t index_of_word(const KeyForm& form, const std::string& word);

// The JSON Schema (draft 2020-12) of the form. Empty for a section: its table has its keys.
Json schema_of(const KeyForm& form);

enum class KeyUse {
  kRead,      // part of the resolved recipe
  kNoEffect,  // known to DeepSpeed. A notice reports why it has no effect here
  kSilent,    // the same without a notice
};

struct KeyRow {
  std::string name;
  std::string meaning;
  KeyForm form = {};
  KeyUse use = KeyUse::kRead;
  Json fallback = nullptr;     // the default. Null: none, or `otherwise`
  std::string otherwise = {};  // what an absent key means when its default is computed
  bool has_influence = true;   // whether it changes what a run computes (About)
  bool required = false;
  std::string kind = {};  // the "type" of the section for which the key exists. Empty: every type
  // The members below are set when the table was read from a recipe.
  bool given = false;
  Json value = nullptr;         // the value that the run uses. Null: none
  std::list<KeyRow> rows = {};  // keys of a section
};

// Returns the value of a key in a section, or null when it is absent or JSON's null.
const Json* given_value(const Json& section, const std::string& name);

// Whether another value at the JSON pointer ("/run/steps") may change what a run computes. False
// for a key that is listed as without influence, has no effect or allows only one value. True for a
// key that is not in the table.
bool has_influence(const KeyRow& section, std::string_view pointer);

// Returns every key that was read, with the value that the run uses. A section without any such key
// is returned as it was given.
Json resolved_values(const KeyRow& section, const Json& given);

}  // namespace onebit
