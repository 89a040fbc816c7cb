// Differences between two JSON objects, and between the recipe of a resumed run and the one it was
// started with. None of the latter is an error, since a longer run or another learning rate may be
// intended; but the run then differs from the unbroken one, and reports it.
#pragma once

#include <string>
#include <vector>

#include "onebit/ground/base/json_fwd.h"
#include "onebit/ground/recipe/key_rows.h"

namespace onebit {

// A value that two JSON objects do not share.
struct Difference {
  std::string pointer;    // "/optimizer/params/lr"
  std::string key;        // "optimizer.params.lr"
  std::string old_value;  // as JSON; "absent" where there is none
  std::string new_value;
};
// All of them, by their pointers.
std::vector<Difference> json_differences(const Json& old_object, const Json& new_object);

// One line per key that differs between two recipes, except for keys that do not influence the
// values (how often to save, evaluate, print) according to the new recipe's `table`.
std::vector<std::string> recipe_differences(const Json& old_recipe, const Json& new_recipe,
                                            const KeyRow& table);

}  // namespace onebit
