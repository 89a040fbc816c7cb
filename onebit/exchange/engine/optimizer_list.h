// All optimizers that a recipe may name.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "onebit/exchange/optim/optimizer_recipe.h"
#include "onebit/ground/recipe/keys.h"

namespace onebit::engine {

// Reads {"type": ..., "params": {...}}. `read_more` lists further keys of the params of every
// optimizer. Returns null on an error, which is recorded in `section`.
std::shared_ptr<const optim::OptimizerRecipe> read_optimizer(
    Keys section, const std::function<void(Keys& params)>& read_more = {});

// One recipe for each method of compression, whose averages end after `dense_updates`, for plans.
std::vector<std::shared_ptr<const optim::OptimizerRecipe>> compressed_recipes(
    int64_t dense_updates);

}  // namespace onebit::engine
