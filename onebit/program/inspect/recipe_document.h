// The table of all keys of a recipe as a document.
#pragma once

#include <string>

namespace onebit::inspect {

// Markdown, the text of docs/recipe.md. Sections that every task has come first.
std::string recipe_document();

}  // namespace onebit::inspect
