// The table of a recipe's keys, as the readers of its sections have listed them (keys.h).
#pragma once

#include <list>
#include <string>
#include <string_view>

#include "onebit/ground/base/json.h"
#include "onebit/ground/recipe/key_form.h"

namespace onebit {

enum class KeyUse {
  kRead,      // part of the resolved recipe
  kNoEffect,  // known to DeepSpeed; a notice reports why it has no effect here
  kSilent,    // the same without a notice
};

struct KeyRow {
  std::string name;
  std::string meaning;
  KeyForm form = {};
  KeyUse use = KeyUse::kRead;
  Json fallback = nullptr;     // the default; null: none, or `otherwise`
  std::string otherwise = {};  // what an absent key means when its default is computed
  bool has_influence = true;   // whether it changes what a run computes (About)
  bool required = false;
  std::string kind = {};  // the "type" of the section for which the key exists; empty: every type
  // The members below are set when the table was read from a recipe.
  bool given = false;
  Json value = nullptr;         // the value that the run uses; null: none
  std::list<KeyRow> rows = {};  // keys of a section
};

// Returns the value of a key in a section; null when it is absent or JSON's null.
const Json* given_value(const Json& section, const std::string& name);

// Whether another value at the JSON pointer ("/run/steps") may change what a run computes. False
// for a key that is listed as without influence, has no effect or allows only one value; true for a
// key that is not in the table.
bool has_influence(const KeyRow& section, std::string_view pointer);

// Returns every key that was read, with the value that the run uses. A section without any such key
// is returned as it was given.
Json resolved_values(const KeyRow& section, const Json& given);

}  // namespace onebit
