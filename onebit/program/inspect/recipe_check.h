// The faults of a recipe, and the values that it changes.
#pragma once

#include <string>
#include <vector>

#include "onebit/ground/base/file.h"

namespace onebit::inspect {

struct RecipeCheck {
  std::vector<std::string> errors;  // all faults, with their places
  std::string summary;  // without errors: the task, and the values that are not defaults
};

// Reads the recipe with `overrides` ("section.key=value"), as the command of its task does, except
// for checks that depend on data and ranks. Errors: no file, no JSON object, an unknown task.
RecipeCheck check_recipe(const Path& path, const std::vector<std::string>& overrides = {});

}  // namespace onebit::inspect
