// The table of all keys of a recipe as a document and as a JSON Schema.
#pragma once

#include <string>

#include "onebit/ground/base/json_fwd.h"

namespace onebit::inspect {

// Returns Markdown, the text of docs/recipe.md: each key once. With a task it has only keys of
// recipes for that task.
std::string recipe_document(const std::string& task = "");

// A schema (draft 2020-12) for the recipes of one task, or of all tasks if `task` is empty. Rules
// that join keys (two of three batch sizes, an epoch count or a step count) are checked by the
// parser only. Error: an unknown task.
Json recipe_schema(const std::string& task);

}  // namespace onebit::inspect
