#include "onebit/engine/rank_texts.h"

#include <array>
#include <cstdint>
#include <cstring>
#include <numeric>
#include <span>

namespace onebit::engine {
namespace {

constexpr size_t kMessageBytes = 1024;

}  // namespace

std::vector<std::string> gather_texts(comm::Communicator& communicator, const std::string& mine) {
  const auto world = static_cast<size_t>(communicator.world_size());
  const auto own_bytes = static_cast<int64_t>(mine.size());
  std::vector<int64_t> sizes(world);
  communicator.all_gather(std::as_bytes(std::span(&own_bytes, 1)),
                          std::as_writable_bytes(std::span(sizes)));
  const int64_t total = std::accumulate(sizes.begin(), sizes.end(), int64_t{0});
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
  std::array<char, kMessageBytes> message{};
  try {
    work();
  } catch (const std::exception& error) {
    std::strncpy(message.data(), error.what(), kMessageBytes - 1);
    if (message[0] == '\0') message[0] = '?';
  }
  std::vector<char> all(kMessageBytes * static_cast<size_t>(communicator.world_size()));
  communicator.all_gather(std::as_bytes(std::span(message)),
                          std::as_writable_bytes(std::span(all)));
  for (int rank = 0; rank < communicator.world_size(); ++rank) {
    const char* text = all.data() + kMessageBytes * static_cast<size_t>(rank);
    if (*text != '\0') fail("{}, rank {}: {}", what, rank, text);
  }
}

}  // namespace onebit::engine
