// Differences between the recipe of a resumed run and the one it was started with. None is an
// error, since a longer run or another learning rate may be intended; but the run then differs from
// the unbroken one, and reports it.
#pragma once

#include <string>
#include <vector>

#include "onebit/base/json_fwd.h"
#include "onebit/base/key_rows.h"

namespace onebit::training {

// One line per key that differs between two recipes, except for keys that do not influence the
// values (how often to save, evaluate, print) according to the new recipe's `table`.
std::vector<std::string> recipe_differences(const Json& old_recipe, const Json& new_recipe,
                                            const KeyRow& table);

}  // namespace onebit::training
