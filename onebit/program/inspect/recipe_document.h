// The table of all keys of a recipe as a document, as a JSON Schema, and as the check of a recipe.
#pragma once

#include <string>
#include <vector>

#include "onebit/ground/base/file.h"
#include "onebit/ground/base/json_fwd.h"

namespace onebit::inspect {

// Returns Markdown, the text of docs/recipe.md: each key once. With a task it has only keys of
// recipes for that task.
std::string recipe_document(const std::string& task = "");

// A schema (draft 2020-12) for the recipes of one task, or of all tasks if `task` is empty. Rules
// that join keys (two of three batch sizes, an epoch count or a step count) are checked by the
// parser only. Error: an unknown task.
Json recipe_schema(const std::string& task);

// The faults of a recipe, and the values that it changes.
struct RecipeCheck {
  std::vector<std::string> errors;  // all faults, with their places
  std::string summary;  // without errors: the task, and the values that are not defaults
};

// Reads the recipe with `overrides` ("section.key=value"), as the command of its task does, except
// for checks that depend on data and ranks. Errors: no file, no JSON object, an unknown task.
RecipeCheck check_recipe(const Path& path, const std::vector<std::string>& overrides = {});

}  // namespace onebit::inspect
