#include "onebit/training/training/rank_agreement.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "onebit/exchange/comm/collectives.h"
#include "onebit/ground/base/checksum.h"
#include "onebit/ground/base/error.h"
#include "onebit/ground/base/json.h"
#include "onebit/ground/recipe/recipe.h"

namespace onebit::training {
namespace {

// Exchanges sixteen bytes per rank. The texts themselves are sent only if they differ.
bool is_same_on_all(comm::Communicator& communicator, const std::string& text) {
  const std::array<int64_t, 2> mine = {static_cast<int64_t>(text.size()),
                                       static_cast<int64_t>(crc32c(text.data(), text.size()))};
  std::vector<std::array<int64_t, 2>> all(static_cast<size_t>(communicator.world_size()));
  communicator.all_gather(std::as_bytes(std::span(mine)), std::as_writable_bytes(std::span(all)));
  return std::ranges::all_of(all, [&](const auto& one) { return one == all.front(); });
}

}  // namespace

void require_same_on_all(comm::Communicator& communicator, const Json& mine, std::string_view what,
                         std::string_view remedy) {
  // Flat, as differences are found: texts differ only if there is one.
  const std::string text = json_text(mine.flatten());
  if (communicator.world_size() == 1 || is_same_on_all(communicator, text)) return;
  const std::vector<std::string> texts = comm::gather_texts(communicator, text);
  const auto other = std::ranges::find_if(texts, [&](const auto& one) { return one != texts[0]; });
  const Difference found =
      json_differences(Json::parse(texts[0]).unflatten(), Json::parse(*other).unflatten()).front();
  fail("{} of rank {} differs from that of rank 0: `{}` is {}, on rank 0 it is {}; {}", what,
       other - texts.begin(), found.key, found.new_value, found.old_value, remedy);
}

}  // namespace onebit::training
