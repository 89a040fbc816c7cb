// Every optimizer that a recipe may name, one line each.
#pragma once

#include <memory>

#include "onebit/base/json.h"
#include "onebit/optim/optimizer_recipe.h"

namespace onebit::optim {

// Reads {"type": ..., "params": {...}}. Errors: an unknown type or key (with the nearest known
// one), a value out of range.
std::shared_ptr<const OptimizerRecipe> read_optimizer(JsonReader section);

}  // namespace onebit::optim
