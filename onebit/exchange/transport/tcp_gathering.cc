#include "onebit/exchange/transport/tcp_gathering.h"

#include <algorithm>
#include <map>
#include <utility>

#include "onebit/exchange/transport/tcp_protocol.h"
#include "onebit/ground/base/clock.h"
#include "onebit/ground/base/error.h"
#include "onebit/ground/base/log.h"

namespace onebit::transport {
namespace {

constexpr double kSilentStartSeconds = 10;  // then rank 0 says for whom it waits

}  // namespace

template <typename Body>
void TcpGathering::for_all(const Body& body) {
  for (size_t rank = 1; rank < ranks_.size(); ++rank) {
    if (ranks_[rank].has_come()) body(static_cast<int>(rank), ranks_[rank]);
  }
}

std::string TcpGathering::name_of(int rank) const {
  return fmt::format("rank {} on {}", rank, host_in(ranks_[static_cast<size_t>(rank)].hello));
}

// "3, 7-9".
std::string TcpGathering::missing() const {
  std::string text;
  for (size_t rank = 1; rank < ranks_.size(); ++rank) {
    if (ranks_[rank].has_come()) continue;
    const size_t first = rank;
    while (rank + 1 < ranks_.size() && !ranks_[rank + 1].has_come()) ++rank;
    text += fmt::format("{}{}", text.empty() ? "" : ", ", first);
    if (rank > first) text += fmt::format("-{}", rank);
  }
  return text;
}

void TcpGathering::take(TcpDoor::Visitor visitor) {
  if (visitor.kind != TcpNoteKind::kHello) return;
  const int rank = number_in(visitor.note, "rank", -1), world = number_in(visitor.note, "world", 0);
  const std::string host = host_in(visitor.note), from = visitor.from.text();
  std::string wrong;
  if (world != options_.world_size) {
    wrong = fmt::format(
        "rank {} on {} was started as one of {} ranks, rank 0 as one of {}: start all with the "
        "same WORLD_SIZE",
        rank, host, world, options_.world_size);
  } else if (rank < 0 || rank >= world) {
    wrong = fmt::format("a process on {} has the rank {} of {} ranks", host, rank, world);
  } else if (rank == 0 || ranks_[static_cast<size_t>(rank)].has_come()) {
    wrong = fmt::format(
        "two processes have rank {}, on {} and on {} ({}): give each process a RANK of its own",
        rank, rank == 0 ? own_host() : host_in(ranks_[static_cast<size_t>(rank)].hello), host,
        from);
  } else if (const std::string version = text_in(visitor.note, "version");
             version != ONEBIT_VERSION) {
    wrong = fmt::format("rank {} on {} runs onebit {}, rank 0 {}: install the same on all machines",
                        rank, host, version, ONEBIT_VERSION);
  }
  if (!wrong.empty()) {
    send_note(visitor.socket, TcpNoteKind::kFailed, {{"reason", wrong}}, identity_, false);
    fail("{}", wrong);
  }
  Rank& place = ranks_[static_cast<size_t>(rank)];
  place.hello = std::move(visitor.note);
  place.socket = std::move(visitor.socket);
  place.reader = TcpNoteReader(identity_, false);
}

// Numbers the machines, and the ranks on each machine. A local number that a rank gives itself
// takes precedence.
Json TcpGathering::list(const Json& own) const {
  std::map<std::string, int> machines;
  std::map<int, int> ranks_on;
  Json ranks = Json::array();
  for (size_t rank = 0; rank < ranks_.size(); ++rank) {
    const Json& hello = rank == 0 ? own : ranks_[rank].hello;
    const int next = static_cast<int>(machines.size());
    const int node = machines.try_emplace(text_in(hello, "machine"), next).first->second;
    const int place = ranks_on[node]++;
    ranks.push_back({{"host", host_in(hello)},
                     {"endpoints", hello.value("endpoints", Json::array())},
                     {"node", node},
                     {"local", number_in(hello, "local", place)}});
  }
  return {{"ranks", std::move(ranks)}};
}

Json TcpGathering::gather(TcpDoor& door, const Json& own) {
  bool has_told = false;
  for (const Stopwatch waited; !missing().empty();) {
    const double left = options_.start_seconds - waited.seconds();
    require(left > 0,
            "these of {} ranks have not come to {} within {:.0f} s: {}; their own messages say "
            "why, or their machines cannot reach this port",
            options_.world_size, fmt::format("{}:{}", options_.master, options_.port),
            options_.start_seconds, missing());
    if (!has_told && waited.seconds() > kSilentStartSeconds) {
      log_info("waiting at {}:{} for these of {} ranks: {}", options_.master, options_.port,
               options_.world_size, missing());
      has_told = true;
    }
    auto visitor = door.wait(std::min(left, has_told ? left : kSilentStartSeconds), sockets());
    if (visitor) take(std::move(*visitor));
    listen();
  }
  const Json all = list(own);
  for_all(
      [&](int, Rank& rank) { send_note(rank.socket, TcpNoteKind::kTable, all, identity_, false); });
  return all;
}

std::vector<int> TcpGathering::sockets() const {
  std::vector<int> sockets;
  for (const Rank& rank : ranks_) {
    if (rank.has_come()) sockets.push_back(rank.socket.get());
  }
  return sockets;
}

void TcpGathering::listen() {
  for_all([&](int number, Rank& rank) {
    try {
      read_into(rank.reader, rank.socket);
    } catch (const Error& error) {
      fail("{} has ended before all ranks were connected ({})", name_of(number), error.what());
    }
    if (!rank.reader.is_complete()) return;
    require(rank.reader.kind() == TcpNoteKind::kConnected, "{}",
            text_in(rank.reader.content(), "reason"));
    rank.is_connected = true;
    rank.reader = TcpNoteReader(identity_, false);
  });
}

bool TcpGathering::all_are_connected() const {
  return std::all_of(ranks_.begin() + 1, ranks_.end(),
                     [](const Rank& rank) { return rank.is_connected; });
}

void TcpGathering::start() {
  for_all([&](int, Rank& rank) {
    send_note(rank.socket, TcpNoteKind::kStart, Json::object(), identity_, false);
  });
}

void TcpGathering::fail_all(const std::string& reason) {
  for_all([&](int, Rank& rank) {
    try {
      send_note(rank.socket, TcpNoteKind::kFailed, {{"reason", reason}}, identity_, false);
    } catch (const Error&) {  // it has gone
    }
  });
}

}  // namespace onebit::transport
