#include "onebit/training/rank_agreement.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "onebit/base/crc32c.h"
#include "onebit/base/error.h"
#include "onebit/base/json.h"
#include "onebit/engine/rank_texts.h"

namespace onebit::training {
namespace {

// Exchanges sixteen bytes per rank; the texts themselves are sent only if they differ.
bool is_same_on_all(comm::Communicator& communicator, const std::string& text) {
  const std::array<int64_t, 2> mine = {static_cast<int64_t>(text.size()),
                                       static_cast<int64_t>(crc32c(text.data(), text.size()))};
  std::vector<std::array<int64_t, 2>> all(static_cast<size_t>(communicator.world_size()));
  communicator.all_gather(std::as_bytes(std::span(mine)), std::as_writable_bytes(std::span(all)));
  return std::ranges::all_of(all, [&](const auto& one) { return one == all.front(); });
}

std::string dotted(const std::string& pointer) {
  std::string key = pointer.substr(1);
  std::ranges::replace(key, '/', '.');
  return key;
}

std::string value_in(const Json& flat, const std::string& pointer) {
  return flat.contains(pointer) ? flat.at(pointer).dump() : std::string("absent");
}

// Of two that differ.
std::string first_difference(const Json& a, const Json& b) {
  std::set<std::string> pointers;
  for (const auto& [pointer, value] : a.items()) pointers.insert(pointer);
  for (const auto& [pointer, value] : b.items()) pointers.insert(pointer);
  const auto differs = [&](const std::string& one) { return value_in(a, one) != value_in(b, one); };
  const auto found = std::ranges::find_if(pointers, differs);
  return found == pointers.end() ? "" : *found;
}

}  // namespace

void require_same_on_all(comm::Communicator& communicator, const Json& mine, std::string_view what,
                         std::string_view remedy) {
  const std::string text = mine.dump();
  if (communicator.world_size() == 1 || is_same_on_all(communicator, text)) return;
  const std::vector<std::string> texts = engine::gather_texts(communicator, text);
  const auto other = std::ranges::find_if(texts, [&](const auto& one) { return one != texts[0]; });
  const Json first = Json::parse(texts[0]).flatten(), differing = Json::parse(*other).flatten();
  const std::string pointer = first_difference(first, differing);
  fail("{} of rank {} differs from that of rank 0: `{}` is {}, on rank 0 it is {}; {}", what,
       other - texts.begin(), dotted(pointer), value_in(differing, pointer),
       value_in(first, pointer), remedy);
}

}  // namespace onebit::training
