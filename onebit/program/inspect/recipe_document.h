// The table of all keys of a recipe as a document.
#pragma once

#include <string>

namespace onebit::inspect {

// Returns Markdown, the text of docs/recipe.md: each key once. With a task it has only keys of
// recipes for that task.
std::string recipe_document(const std::string& task = "");

}  // namespace onebit::inspect
