#include "onebit/exchange/checkpoint/rank_texts.h"

#include <cstdint>
#include <numeric>
#include <span>

#include "onebit/ground/base/error.h"

namespace onebit::checkpoint {

std::vector<std::string> gather_texts(comm::Communicator& communicator, const std::string& mine) {
  const auto world = static_cast<size_t>(communicator.world_size());
  const auto own_bytes = static_cast<int64_t>(mine.size());
  std::vector<int64_t> sizes(world);
  communicator.all_gather(std::as_bytes(std::span(&own_bytes, 1)),
                          std::as_writable_bytes(std::span(sizes)));
  const int64_t total = std::accumulate(sizes.begin(), sizes.end(), int64_t{0});
  if (total == 0) return std::vector<std::string>(world);
  std::string all(static_cast<size_t>(total), '\0');
  communicator.all_gather_v(std::as_bytes(std::span(mine)), std::as_writable_bytes(std::span(all)),
                            sizes);
  std::vector<std::string> texts;
  size_t offset = 0;
  for (const int64_t size : sizes) {
    texts.push_back(all.substr(offset, static_cast<size_t>(size)));
    offset += static_cast<size_t>(size);
  }
  return texts;
}

void run_on_all(comm::Communicator& communicator, const char* what,
                const std::function<void()>& work) {
  std::string message;
  try {
    work();
  } catch (const std::exception& error) {
    message = failure_text(error);
    if (message.empty()) message.push_back('?');  // no text is no failure
  }
  const std::vector<std::string> all = gather_texts(communicator, message);
  for (size_t rank = 0; rank < all.size(); ++rank) {
    if (!all[rank].empty()) fail("{}, rank {}: {}", what, rank, all[rank]);
  }
}

}  // namespace onebit::checkpoint
