// Every optimizer that a recipe may name, one line each.
#pragma once

#include <memory>

#include "onebit/base/keys.h"
#include "onebit/optim/optimizer_recipe.h"

namespace onebit::optim {

// Reads {"type": ..., "params": {...}}. Null where that is wrong, which `section` then knows.
std::shared_ptr<const OptimizerRecipe> read_optimizer(Keys section);

}  // namespace onebit::optim
