// The table of all keys of a recipe as a document.
#pragma once

#include <string>

namespace onebit::inspect {

// Returns Markdown, the text of docs/recipe.md: each key once, keys of every task first. With a task
// it has only the keys of a recipe for that task.
std::string recipe_document(const std::string& task = "");

}  // namespace onebit::inspect
