// Recipes and JSON that cross the border to Python as text.
#pragma once

#include <string>
#include <vector>

#include "onebit/ground/recipe/recipe.h"

namespace onebit::python {

// A recipe: a file, or the text of one, with assignments as after --set.
struct GivenRecipe {
  std::string path;  // empty: `text` is the recipe
  std::string text;
  std::vector<std::string> overrides;

  // Where errors say that the recipe is.
  std::string place() const { return path.empty() ? "the recipe" : path; }
  Recipe load() const;
};

}  // namespace onebit::python
