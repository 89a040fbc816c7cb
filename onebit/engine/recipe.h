// Recipes: one JSON file, changed from the command line with --set section.key=value.
#pragma once

#include <string>
#include <vector>

#include "onebit/base/file.h"
#include "onebit/base/json_fwd.h"

namespace onebit::engine {

// Sets one value by its dotted path, e.g. "optimizer.params.lr=1e-4". The value is read as JSON
// when it is JSON, as a string otherwise; sections on the way are made. Errors: no '=', an empty
// key, a path through something that is not an object.
void apply_override(Json& recipe, const std::string& assignment);

// The file with all overrides applied, in order.
Json load_recipe(const Path& path, const std::vector<std::string>& overrides);

}  // namespace onebit::engine
