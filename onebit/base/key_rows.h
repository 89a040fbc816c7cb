// The table of a recipe's keys, as the readers of its sections have listed them (keys.h).
#pragma once

#include <list>
#include <string>
#include <string_view>

#include "onebit/base/json.h"
#include "onebit/base/key_form.h"

namespace onebit {

enum class KeyUse {
  kRead,      // the resolved recipe holds it
  kNoEffect,  // known to DeepSpeed; a notice says why it changes nothing here
  kSilent,    // the same without a notice
};

struct KeyRow {
  std::string name;
  std::string meaning;
  KeyForm form = {};
  KeyUse use = KeyUse::kRead;
  Json fallback = nullptr;     // the default; null: none, or `otherwise`
  std::string otherwise = {};  // what an absent key means where that is computed
  bool has_influence = true;   // on what a run computes (About)
  bool required = false;
  std::string kind = {};  // the value of "type" beside it that has this row; empty: every one
  // Of a table that was read from a recipe.
  bool given = false;
  Json value = nullptr;         // what the run goes by; null: nothing
  std::list<KeyRow> rows = {};  // of a section
};

// The value of a key in a section; null where there is none, or JSON's null.
const Json* given_value(const Json& section, const std::string& name);

// Whether a run may compute something else with another value at the JSON pointer ("/run/steps"):
// not where the key is listed as without influence, has no effect or may have one value only. A key
// that is not in the table may.
bool has_influence(const KeyRow& section, std::string_view pointer);

// Every key that was read, with the value that the run goes by. A section without a key that counts
// stays as it was given.
Json resolved_values(const KeyRow& section, const Json& given);

}  // namespace onebit
