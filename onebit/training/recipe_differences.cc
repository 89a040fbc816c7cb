#include "onebit/training/recipe_differences.h"

#include <algorithm>
#include <set>

namespace onebit::training {
namespace {

std::string dotted(const std::string& pointer) {
  std::string key = pointer.substr(1);
  std::replace(key.begin(), key.end(), '/', '.');
  return key;
}

}  // namespace

std::vector<std::string> recipe_differences(const Json& old_recipe, const Json& new_recipe,
                                            const KeyRow& table) {
  std::vector<std::string> lines;
  const Json was = old_recipe.flatten(), is = new_recipe.flatten();
  std::set<std::string> keys;
  for (const auto& [key, value] : was.items()) keys.insert(key);
  for (const auto& [key, value] : is.items()) keys.insert(key);
  const auto shown = [](const Json& from, const std::string& key) {
    return from.contains(key) ? from.at(key).dump() : std::string("absent");
  };
  for (const std::string& key : keys) {
    if (!has_influence(table, key) || shown(was, key) == shown(is, key)) continue;
    lines.push_back(
        fmt::format("changed: {} is {}, was {}", dotted(key), shown(is, key), shown(was, key)));
  }
  return lines;
}

}  // namespace onebit::training
