// Recipes that leave the sizes of their model to the one that the run starts from.
#pragma once

#include <string>

#include "onebit/base/json_fwd.h"

namespace onebit::cli {

// The recipe with the sizes of `start` (a model folder, a run or a checkpoint), where it does not
// say them itself. Without a model there it is returned as it is: that is an error of the run.
Json with_sizes_of_model(Json recipe, const std::string& start);

}  // namespace onebit::cli
