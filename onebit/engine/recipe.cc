#include "onebit/engine/recipe.h"

#include "onebit/base/json.h"

namespace onebit::engine {

void apply_override(Json& recipe, const std::string& assignment) {
  const size_t equals = assignment.find('=');
  require(equals != std::string::npos && equals > 0,
          "--set {}: expected key=value, e.g. --set optimizer.params.lr=1e-4", assignment);
  const std::string path = assignment.substr(0, equals);
  const std::string text = assignment.substr(equals + 1);
  Json* at = &recipe;
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
}

Json load_recipe(const Path& path, const std::vector<std::string>& overrides) {
  // A recipe may come out of a pipe: --recipe <(...).
  Json recipe = parse_json(read_file(path), path.string());
  require(recipe.is_object(), "{}: a recipe must be one JSON object in braces", path.string());
  for (const auto& assignment : overrides) apply_override(recipe, assignment);
  return recipe;
}

}  // namespace onebit::engine
