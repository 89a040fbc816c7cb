#include "onebit/ground/recipe/recipe.h"

#include <algorithm>
#include <string_view>

namespace onebit {
namespace {

// The offset after the string whose opening quote is at `begin`, or the end of the text.
size_t end_of_string(std::string_view text, size_t begin) {
  size_t at = begin + 1;
  while (at < text.size() && text[at] != '"') at += text[at] == '\\' ? 2 : 1;
  return std::min(at + 1, text.size());
}

// The offset of the line end, or the end of a comment of the kind that parse_json() skips.
size_t end_of_comment(std::string_view text, size_t begin) {
  const bool is_block = text.substr(begin).starts_with("/*");
  const size_t end = is_block ? text.find("*/", begin + 2) : text.find('\n', begin);
  return end == std::string_view::npos ? text.size() : end + (is_block ? 2 : 0);
}

// DeepSpeed reads Hjson: blanks replace its comments with # and its commas before a closing
// bracket, which JSON does not have. Places in the text stay as they are.
std::string without_hjson(std::string text) {
  size_t comma = std::string::npos;  // the last token, if it is a comma
  for (size_t at = 0; at < text.size();) {
    const char here = text[at];
    if (here == '#' || (here == '/' && at + 1 < text.size())) {
      const size_t end = end_of_comment(text, at);
      if (here == '#')
        std::fill(text.begin() + static_cast<ptrdiff_t>(at),
                  text.begin() + static_cast<ptrdiff_t>(end), ' ');
      at = end;
      continue;
    }
    if ((here == '}' || here == ']') && comma != std::string::npos) text[comma] = ' ';
    if (here == ',') {
      comma = at;
    } else if (std::string_view(" \t\r\n").find(here) == std::string_view::npos) {
      comma = std::string::npos;
    }
    at = here == '"' ? end_of_string(text, at) : at + 1;
  }
  return text;
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
  recipe.changed.insert(path);
}

void apply_overrides(Recipe& recipe, const std::vector<std::string>& assignments) {
  for (const std::string& assignment : assignments) apply_override(recipe, assignment);
  require_utf8(recipe.values, assignments.empty() ? recipe.place : "--set");
}

Recipe load_recipe(const Path& path, const std::vector<std::string>& overrides) {
  // A recipe may come out of a pipe: --recipe <(...).
  Recipe recipe = {.values = parse_json(without_hjson(read_file(path)), path.string()),
                   .place = path.string()};
  require(recipe.values.is_object(), "{}: a recipe must be one JSON object in braces",
          recipe.place);
  apply_overrides(recipe, overrides);
  return recipe;
}

}  // namespace onebit
