// The JSON Schema of recipes, from the table of their keys.
#pragma once

#include <string>

#include "onebit/ground/base/json_fwd.h"

namespace onebit::inspect {

// A schema (draft 2020-12) for the recipes of one task, or of all tasks if `task` is empty. Rules
// that join keys (two of three batch sizes, an epoch count or a step count) are checked by the
// parser only. Error: an unknown task.
Json recipe_schema(const std::string& task);

}  // namespace onebit::inspect
