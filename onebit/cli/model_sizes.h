// Recipes that leave the sizes of their model to the one that the run starts from.
#pragma once

#include <string>

#include "onebit/base/file.h"
#include "onebit/base/json_fwd.h"

namespace onebit::cli {

// The recipe with the sizes of `start` (a model folder, a run or a checkpoint), where it does not
// say them itself. Without a model there it is returned as it is: that is an error of the run.
Json with_sizes_of_model(Json recipe, const std::string& start);
// The same of a run that goes on from its checkpoint `tag`; empty: from the newest.
Json with_sizes_of_run(Json recipe, const Path& run, const std::string& tag);

}  // namespace onebit::cli
