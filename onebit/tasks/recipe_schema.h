// The JSON Schema of recipes, from the table of their keys.
#pragma once

#include <string>

#include "onebit/base/json_fwd.h"

namespace onebit::tasks {

// Draft 2020-12, of the recipes of one task; of every task where `task` is empty. Rules that join
// keys (two of three batch sizes, an epoch count or a step count) are the parser's alone. Error: a
// task that is not known.
Json recipe_schema(const std::string& task);

}  // namespace onebit::tasks
