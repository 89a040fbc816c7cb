#include "onebit/ground/recipe/recipe.h"

#include "onebit/ground/base/given_file.h"
#include "onebit/ground/base/json.h"
#include "onebit/ground/base/printable.h"
#include "onebit/ground/recipe/hjson.h"

namespace onebit {
namespace {

constexpr FileKind kRecipeFile = {"a recipe", uint64_t{16} << 20};

// A recipe may come out of a pipe: --recipe <(...).
Json read_recipe(const Path& path) {
  const std::string text = without_hjson(read_given_file(path, kRecipeFile));
  try {
    return parse_json(text, path.string());
  } catch (const Error& error) {
    const std::string found = hjson_in(text);
    if (found.empty()) throw;
    fail(
        "{}. There is {}, as in the Hjson that DeepSpeed reads. Of Hjson, onebit reads comments "
        "that begin with # and a comma before a closing bracket: put keys and texts into double "
        "quotes, and a comma between members (hjson -j {} prints the file as JSON)",
        error.what(), found, shell_quoted(path.string()));
  }
}

}  // namespace

void apply_override(Recipe& recipe, const std::string& assignment) {
  const size_t equals = assignment.find('=');
  require(equals != std::string::npos && equals > 0,
          "--set {}: expected key=value, e.g. --set optimizer.params.lr=1e-4", assignment);
  const std::string path = assignment.substr(0, equals);
  const std::string text = assignment.substr(equals + 1);
  Json* at = &recipe.values;
  size_t begin = 0;
  for (;;) {
    const size_t dot = path.find('.', begin);
    const std::string key = path.substr(begin, dot - begin);
    require(!key.empty(), "--set {}: a key between the dots is empty", assignment);
    if (at->is_null()) *at = Json::object();
    require(at->is_object(), "--set {}: `{}` is not a section", assignment,
            path.substr(0, begin > 0 ? begin - 1 : 0));
    at = &(*at)[key];
    if (dot == std::string::npos) break;
    begin = dot + 1;
  }
  Json value = Json::parse(text, nullptr, false);
  *at = value.is_discarded() ? Json(text) : std::move(value);
  recipe.changed.push_back(path);
}

void apply_overrides(Recipe& recipe, const std::vector<std::string>& assignments) {
  for (const std::string& assignment : assignments) apply_override(recipe, assignment);
  require_utf8(recipe.values, assignments.empty() ? recipe.place : "--set");
}

Recipe load_recipe(const Path& path, const std::vector<std::string>& overrides) {
  Recipe recipe = {.values = read_recipe(path), .place = path.string()};
  require(recipe.values.is_object(), "{}: a recipe must be one JSON object in braces",
          recipe.place);
  apply_overrides(recipe, overrides);
  return recipe;
}

}  // namespace onebit
