#include "onebit/ground/recipe/recipe_differences.h"

#include <algorithm>
#include <set>
#include <utility>

#include "onebit/ground/base/json.h"

namespace onebit {
namespace {

std::string dotted(const std::string& pointer) {
  std::string key = pointer.substr(1);
  std::replace(key.begin(), key.end(), '/', '.');
  return key;
}

}  // namespace

std::vector<Difference> json_differences(const Json& old_object, const Json& new_object) {
  const Json was = old_object.flatten(), is = new_object.flatten();
  std::set<std::string> pointers;
  for (const auto& [pointer, value] : was.items()) pointers.insert(pointer);
  for (const auto& [pointer, value] : is.items()) pointers.insert(pointer);
  const auto shown = [](const Json& from, const std::string& pointer) {
    return from.contains(pointer) ? json_text(from.at(pointer)) : std::string("absent");
  };
  std::vector<Difference> found;
  for (const std::string& pointer : pointers) {
    Difference one = {pointer, dotted(pointer), shown(was, pointer), shown(is, pointer)};
    if (one.old_value != one.new_value) found.push_back(std::move(one));
  }
  return found;
}

std::vector<std::string> recipe_differences(const Json& old_recipe, const Json& new_recipe,
                                            const KeyRow& table) {
  std::vector<std::string> lines;
  for (const Difference& one : json_differences(old_recipe, new_recipe)) {
    if (!has_influence(table, one.pointer)) continue;
    lines.push_back(
        fmt::format("changed: {} is {}, was {}", one.key, one.new_value, one.old_value));
  }
  return lines;
}

}  // namespace onebit
