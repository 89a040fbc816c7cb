// Every optimizer that a recipe may name, one line each.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "onebit/base/keys.h"
#include "onebit/optim/optimizer_recipe.h"

namespace onebit::optim {

// Reads {"type": ..., "params": {...}}; `read_more` lists further keys of the params of every
// optimizer. Null where something is wrong, which `section` then knows.
std::shared_ptr<const OptimizerRecipe> read_optimizer(
    Keys section, const std::function<void(Keys& params)>& read_more = {});

// Of each way to compress one recipe, whose averages end after `dense_updates`: what plans compare.
std::vector<std::shared_ptr<const OptimizerRecipe>> compressed_recipes(int64_t dense_updates);

}  // namespace onebit::optim
