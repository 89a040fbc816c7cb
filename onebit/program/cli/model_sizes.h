// Completes recipes that leave the sizes of their model to the model that the run starts from.
#pragma once

#include <string>

#include "onebit/ground/base/file.h"
#include "onebit/ground/base/json_fwd.h"

namespace onebit::cli {

// The recipe with the sizes of the model in `start` (a model folder, a run or a checkpoint), unless
// the recipe sets them. If there is no model, the recipe is returned unchanged: the run reports the
// error.
Json with_sizes_of_model(Json recipe, const std::string& start);
// The same for a run that continues from its checkpoint `tag`. Empty: from the newest.
Json with_sizes_of_run(Json recipe, const Path& run, const std::string& tag);

}  // namespace onebit::cli
