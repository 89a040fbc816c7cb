#include "python/src/recipes.h"

#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "onebit/ground/base/json.h"
#include "python/src/module.h"

namespace onebit::python {

using namespace nb::literals;

Recipe GivenRecipe::load() const {
  if (!path.empty()) return load_recipe(path, overrides);
  Recipe recipe = {.values = parse_json(text, place()), .place = place()};
  require(recipe.values.is_object(), "{}: a recipe must be one JSON object", recipe.place);
  apply_overrides(recipe, overrides);
  return recipe;
}

void bind_recipes(nb::module_& module) {
  nb::class_<GivenRecipe>(module, "Recipe")
      .def(nb::init<std::string, std::string, std::vector<std::string>>(), "path"_a, "text"_a,
           "overrides"_a)
      .def(
          "values", [](const GivenRecipe& recipe) { return json_text(recipe.load().values); },
          nb::call_guard<nb::gil_scoped_release>());
}

}  // namespace onebit::python
