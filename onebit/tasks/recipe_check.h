// What is wrong in a recipe, and what it changes.
#pragma once

#include <string>
#include <vector>

#include "onebit/base/file.h"

namespace onebit::tasks {

struct RecipeCheck {
  std::vector<std::string> errors;  // everything that is wrong, with its place
  std::string summary;              // without errors: the task, and the values other than default
};

// Reads the recipe, with `overrides` ("section.key=value") instead of what it says, as the command
// of its task does, but for what depends on data and ranks. Errors: no file, no JSON object, a task
// that is not known.
RecipeCheck check_recipe(const Path& path, const std::vector<std::string>& overrides = {});

}  // namespace onebit::tasks
