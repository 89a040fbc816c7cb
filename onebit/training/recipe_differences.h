// What is not as it was when a run goes on. Nothing of it is an error: a longer run or another rate
// may be meant; but then the run is not what the unbroken one would have been, and says so.
#pragma once

#include <string>
#include <vector>

#include "onebit/base/json.h"

namespace onebit::training {

// A line for each key that differs between two recipes; keys that decide no value (how often to
// save, evaluate, print) are left out.
std::vector<std::string> recipe_differences(const Json& old_recipe, const Json& new_recipe);

}  // namespace onebit::training
