#include "onebit/tasks/resume_differences.h"

#include <algorithm>
#include <set>

namespace onebit::tasks {
namespace {

// Prefixes of JSON pointers.
constexpr const char* kHarmless[] = {
    "/comment",          "/tensorboard",        "/run/checkpoint_every",  "/run/evaluate_every",
    "/run/keep_last",    "/run/check_replicas", "/run/max_skipped_steps", "/run/watch",
    "/data/evaluation_", "/steps_per_print",    "/wall_clock_breakdown"};

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

Json stores_to_json(const Stores& stores) {
  Json list = Json::array();
  for (const data::WeightedStore& entry : stores) {
    const data::StoreManifest& manifest = entry.store->manifest();
    list.push_back({{"tokens", manifest.tokens},
                    {"checksum", manifest.file(data::kTokensName).crc32},
                    {"weight", entry.weight}});
  }
  return list;
}

std::vector<std::string> resume_differences(const Json& client_state, const Json& recipe,
                                            const Stores& stores) {
  std::vector<std::string> lines;
  if (client_state.value("stores", Json()) != stores_to_json(stores)) {
    lines.push_back(
        "not as it was: --data names other token stores or weights; sample numbers go on in them");
  }
  const Json was = client_state.value("recipe", Json::object()).flatten(), is = recipe.flatten();
  std::set<std::string> keys;
  for (const auto& [key, value] : was.items()) keys.insert(key);
  for (const auto& [key, value] : is.items()) keys.insert(key);
  const auto shown = [](const Json& from, const std::string& key) {
    return from.contains(key) ? from.at(key).dump() : std::string("absent");
  };
  for (const std::string& key : keys) {
    if (is_harmless(key) || shown(was, key) == shown(is, key)) continue;
    lines.push_back(fmt::format("not as it was: {} is {}, was {}", dotted(key), shown(is, key),
                                shown(was, key)));
  }
  return lines;
}

}  // namespace onebit::tasks
