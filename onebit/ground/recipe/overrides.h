// Recipes: one JSON file, changed from the command line with --set section.key=value.
#pragma once

#include <string>
#include <vector>

#include "onebit/ground/base/file.h"
#include "onebit/ground/base/json_fwd.h"

namespace onebit {

// Sets one value by its dotted path, e.g. "optimizer.params.lr=1e-4". The value is parsed as JSON
// if it is JSON, otherwise it is a string; missing sections of the path are created. Errors: no
// '=', an empty key, a path through a value that is not an object.
void apply_override(Json& recipe, const std::string& assignment);

// The file with all overrides applied, in order. As in DeepSpeed, it may have comments with # and
// commas before a closing bracket (Hjson).
Json load_recipe(const Path& path, const std::vector<std::string>& overrides);

}  // namespace onebit
