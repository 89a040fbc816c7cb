#include "onebit/training/recipe_differences.h"

#include <algorithm>
#include <set>

namespace onebit::training {
namespace {

// Prefixes of JSON pointers.
constexpr const char* kHarmless[] = {"/comment",
                                     "/task",
                                     "/tensorboard",
                                     "/run/checkpoint_every",
                                     "/run/evaluate_every",
                                     "/run/keep_last",
                                     "/run/check_replicas",
                                     "/run/max_skipped_steps",
                                     "/run/watch",
                                     "/data/evaluation_",
                                     "/steps_per_print",
                                     "/wall_clock_breakdown"};

bool is_harmless(const std::string& key) {
  return std::any_of(std::begin(kHarmless), std::end(kHarmless),
                     [&](const char* prefix) { return key.starts_with(prefix); });
}

std::string dotted(const std::string& pointer) {
  std::string key = pointer.substr(1);
  std::replace(key.begin(), key.end(), '/', '.');
  return key;
}

}  // namespace

std::vector<std::string> recipe_differences(const Json& old_recipe, const Json& new_recipe) {
  std::vector<std::string> lines;
  const Json was = old_recipe.flatten(), is = new_recipe.flatten();
  std::set<std::string> keys;
  for (const auto& [key, value] : was.items()) keys.insert(key);
  for (const auto& [key, value] : is.items()) keys.insert(key);
  const auto shown = [](const Json& from, const std::string& key) {
    return from.contains(key) ? from.at(key).dump() : std::string("absent");
  };
  for (const std::string& key : keys) {
    if (is_harmless(key) || shown(was, key) == shown(is, key)) continue;
    lines.push_back(
        fmt::format("changed: {} is {}, was {}", dotted(key), shown(is, key), shown(was, key)));
  }
  return lines;
}

}  // namespace onebit::training
