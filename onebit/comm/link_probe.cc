#include "onebit/comm/link_probe.h"

#include <algorithm>
#include <array>
#include <limits>
#include <vector>

#include "onebit/base/clock.h"

namespace onebit::comm {
namespace {

// Seconds for `times` all-to-alls of `message_bytes` to every rank; the slowest rank's.
double time_all_to_all(Communicator& communicator, std::vector<std::byte>& send,
                       std::vector<std::byte>& receive, int64_t message_bytes, int64_t times) {
  const auto world = static_cast<size_t>(communicator.world_size());
  const std::vector<int64_t> sizes_bytes(world, message_bytes);
  const size_t total = world * static_cast<size_t>(message_bytes);
  if (send.size() < total) {
    send.resize(total);
    receive.resize(total);
  }
  communicator.barrier();
  const Stopwatch stopwatch;
  for (int64_t i = 0; i < times; ++i) {
    communicator.all_to_all_v({.send = std::span(send).first(total),
                               .send_bytes = sizes_bytes,
                               .receive = std::span(receive).first(total),
                               .receive_bytes = sizes_bytes});
  }
  std::array<double, 1> seconds{stopwatch.seconds()};
  communicator.all_reduce(std::span<double>(seconds), Reduction::kMax);
  return seconds[0];
}

}  // namespace

LinkSpeed probe_link(Communicator& communicator, double seconds) {
  if (communicator.world_size() == 1) return {0, std::numeric_limits<double>::infinity()};
  std::vector<std::byte> send, receive;
  LinkSpeed link;
  // A first round opens connections.
  double spent = time_all_to_all(communicator, send, receive, 8, 4);
  const double small = time_all_to_all(communicator, send, receive, 8, 16);
  link.latency_seconds = small / 16;
  spent += small;
  // Larger and larger messages, until one takes a good part of the time.
  for (int64_t message_bytes = int64_t{1} << 14;; message_bytes *= 4) {
    const double elapsed = time_all_to_all(communicator, send, receive, message_bytes, 1);
    spent += elapsed;
    const double transfer = std::max(elapsed - link.latency_seconds, elapsed * 0.1);
    const int64_t sent_bytes = message_bytes * (communicator.world_size() - 1);
    link.bytes_per_second =
        std::max(link.bytes_per_second, static_cast<double>(sent_bytes) / transfer);
    if (spent + 4 * elapsed > seconds || message_bytes >= (int64_t{1} << 24)) break;
  }
  return link;
}

double predicted_seconds(const LinkSpeed& link, int64_t bytes, int64_t collectives) {
  return link.latency_seconds * static_cast<double>(collectives) +
         static_cast<double>(bytes) / link.bytes_per_second;
}

}  // namespace onebit::comm
