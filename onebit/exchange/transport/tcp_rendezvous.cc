#include "onebit/exchange/transport/tcp_rendezvous.h"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <optional>
#include <span>
#include <sstream>
#include <thread>
#include <utility>

#include "onebit/exchange/transport/tcp_addresses.h"
#include "onebit/exchange/transport/tcp_door.h"
#include "onebit/exchange/transport/tcp_gathering.h"
#include "onebit/exchange/transport/tcp_protocol.h"
#include "onebit/ground/base/clock.h"
#include "onebit/ground/base/error.h"
#include "onebit/ground/base/log.h"

namespace onebit::transport {
namespace {

constexpr double kTrySeconds = 10;  // for one address of a rank
constexpr double kQuietSeconds = 10;
constexpr double kFirstPause = 0.01, kLongestPause = 0.25;  // between tries to reach rank 0
constexpr double kAnswerSeconds = 30;  // for rank 0 to report more than its own time limit

class Meeting {
 public:
  explicit Meeting(const TcpOptions& options)
      : options_(options),
        identity_{.run = options.run, .token = options.token},
        peers_(static_cast<size_t>(options.world_size)) {}

  TcpWorld as_first();
  TcpWorld as_other();

 private:
  std::string place() const { return fmt::format("{}:{}", options_.master, options_.port); }
  double left() const { return std::max(0.0, options_.start_seconds - waited_.seconds()); }
  bool is_local_only() const;

  std::vector<TcpAddress> master_addresses() const;
  std::vector<Socket> listen_as_master() const;
  std::vector<Socket> listen_for_peers(std::span<const TcpAddress> addresses,
                                       std::vector<TcpEndpoint>& endpoints) const;
  Socket reach_master() const;
  std::vector<TcpAddress> addresses_beside(const Socket& master) const;
  void connect_with_lower(const Json& list, const Socket& master);
  Socket connect_with(int peer, const Json& hello, const Socket& master) const;
  void let_in(TcpDoor::Visitor visitor);
  bool all_higher_have_come() const;
  void prepare(const Socket& socket) const { set_tcp_options(socket, options_.silent_seconds); }
  void take_list(const Json& list);
  TcpWorld result(const Json& list);

  const TcpOptions& options_;
  TcpIdentity identity_;
  Stopwatch waited_;
  std::vector<TcpPeer> peers_;
};

// Whether the run stays on this machine, so that nobody else has to reach its ranks.
bool Meeting::is_local_only() const {
  if (options_.on_one_machine || options_.master == "localhost") return true;
  return options_.master.starts_with("127.") || options_.master == "::1";
}

// MASTER_ADDR may be a list, of which not all names need to exist on every machine.
std::vector<TcpAddress> Meeting::master_addresses() const {
  std::vector<TcpAddress> found;
  std::string reason;
  std::istringstream list(options_.master);
  for (std::string one; std::getline(list, one, ',');) {
    try {
      const std::vector<TcpAddress> more = resolve(one, options_.port);
      found.insert(found.end(), more.begin(), more.end());
    } catch (const Error& error) {
      reason = error.what();
    }
  }
  require(!found.empty(), "{}", reason.empty() ? "MASTER_ADDR names no machine" : reason);
  return found;
}

// Listens at those addresses of MASTER_ADDR that belong to this machine: "localhost" has two.
std::vector<Socket> Meeting::listen_as_master() const {
  std::vector<Socket> listeners;
  std::string reason;
  for (const TcpAddress& address : master_addresses()) {
    // /etc/hosts often gives the machine's own name an address that only this machine has. And a
    // gateway may translate the address.
    const bool is_hidden = address.is_loopback() && !is_local_only();
    Socket listener = listen_at(is_hidden ? address.any() : address);
    if (!listener.is_open() && errno == EADDRNOTAVAIL) listener = listen_at(address.any());
    const int error = errno;
    if (listener.is_open()) {
      listeners.push_back(std::move(listener));
    } else if (error != EADDRINUSE || listeners.empty()) {
      reason = reason_of(error);
    }
  }
  require(!listeners.empty(),
          "rank 0 cannot listen at {}: {}. MASTER_ADDR has to be a name or address of rank 0's "
          "machine, and MASTER_PORT a port that no other program or run uses",
          place(), reason);
  return listeners;
}

std::vector<Socket> Meeting::listen_for_peers(std::span<const TcpAddress> addresses,
                                              std::vector<TcpEndpoint>& endpoints) const {
  std::vector<Socket> listeners;
  for (const TcpAddress& address : addresses) {
    listeners.push_back(listen_in(address, options_.first_port, options_.last_port));
    const TcpAddress bound = local_address(listeners.back());
    const bool is_any = bound.host() == bound.any().host();
    endpoints.push_back({.host = is_any ? "" : bound.host(), .port = bound.port()});
  }
  return listeners;
}

Socket Meeting::reach_master() const {
  double pause = kFirstPause;
  bool has_told = false;
  for (;;) {
    options_.check();
    std::string reason;
    try {
      for (const TcpAddress& address : master_addresses()) {
        Socket socket = begin_connecting(address);
        const int error =
            socket.is_open() ? finish_connecting(socket, std::min(kTrySeconds, left())) : errno;
        if (error == 0) return socket;
        reason = fmt::format("{}: {}", address.text(), reason_of(error));
      }
    } catch (const Error& error) {
      reason = error.what();
    }
    require(left() > 0,
            "rank {} cannot reach rank 0 at {} within {:.0f} s: {}. Compare MASTER_ADDR and "
            "MASTER_PORT with those of rank 0, and see whether it runs",
            options_.rank, place(), options_.start_seconds, reason);
    if (!has_told && waited_.seconds() > kQuietSeconds) {
      log_info("rank {} still tries to reach rank 0 at {}: {}", options_.rank, place(), reason);
      has_told = true;
    }
    std::this_thread::sleep_for(std::chrono::duration<double>(pause));
    pause = std::min(2 * pause, kLongestPause);
  }
}

// Returns where the others can reach this rank: the address from which it reaches rank 0.
std::vector<TcpAddress> Meeting::addresses_beside(const Socket& master) const {
  if (!options_.interfaces.empty()) return own_addresses(options_.interfaces);
  const TcpAddress address = local_address(master);
  if (address.is_loopback() && !is_local_only()) return own_addresses("");
  return {address};
}

Socket Meeting::connect_with(int peer, const Json& hello, const Socket& master) const {
  std::string tried;
  for (const TcpEndpoint& endpoint : endpoints_in(hello)) {
    const std::string host = endpoint.host.empty() ? peer_address(master).host() : endpoint.host;
    try {
      const TcpAddress address = resolve(host, endpoint.port).front();
      Socket socket = begin_connecting(address);
      const int error =
          socket.is_open() ? finish_connecting(socket, std::min(kTrySeconds, left())) : errno;
      require(error == 0, "{}", reason_of(error));
      send_note(socket, TcpNoteKind::kPeer, {{"rank", options_.rank}, {"to", peer}}, identity_,
                true);
      TcpDoor::Visitor answer = receive_note(std::move(socket), left(), identity_, options_.check);
      require(answer.kind == TcpNoteKind::kWelcome, "{}", text_in(answer.note, "reason"));
      return std::move(answer.socket);
    } catch (const Error& error) {
      tried += fmt::format("{}{} port {}: {}", tried.empty() ? "" : "; ", host, endpoint.port,
                           error.what());
    }
  }
  fail(
      "rank {} on {} cannot reach rank {} on {} ({}): open the ports between the machines, or "
      "choose their common network with ONEBIT_TCP_INTERFACE",
      options_.rank, own_host(), peer, host_in(hello), tried);
}

void Meeting::connect_with_lower(const Json& list, const Socket& master) {
  for (int peer = 0; peer < options_.rank; ++peer) {
    Socket socket = connect_with(peer, list["ranks"][static_cast<size_t>(peer)], master);
    prepare(socket);
    peers_[static_cast<size_t>(peer)].socket = std::move(socket);
  }
}

void Meeting::let_in(TcpDoor::Visitor visitor) {
  if (visitor.kind != TcpNoteKind::kPeer) return;
  const int rank = number_in(visitor.note, "rank", -1), to = number_in(visitor.note, "to", -1);
  if (to != options_.rank || rank <= options_.rank || rank >= options_.world_size) {
    const std::string reason =
        fmt::format("rank {} answers there: several machines have this address", options_.rank);
    send_note(visitor.socket, TcpNoteKind::kFailed, {{"reason", reason}}, identity_, false);
    return;
  }
  send_note(visitor.socket, TcpNoteKind::kWelcome, Json::object(), identity_, false);
  prepare(visitor.socket);
  peers_[static_cast<size_t>(rank)].socket = std::move(visitor.socket);
}

bool Meeting::all_higher_have_come() const {
  return std::all_of(peers_.begin() + options_.rank + 1, peers_.end(),
                     [](const TcpPeer& peer) { return peer.socket.is_open(); });
}

void Meeting::take_list(const Json& list) {
  const auto ranks = list.find("ranks");
  require(ranks != list.end() && ranks->is_array() && ranks->size() == peers_.size(),
          "rank 0 sends a malformed list of the ranks");
  for (size_t rank = 0; rank < peers_.size(); ++rank) peers_[rank].host = host_in((*ranks)[rank]);
}

TcpWorld Meeting::result(const Json& list) {
  TcpWorld world;
  for (const Json& rank : list["ranks"]) {
    world.node_of_rank.push_back(number_in(rank, "node", 0));
  }
  world.local_rank = number_in(list["ranks"][static_cast<size_t>(options_.rank)], "local", 0);
  world.peers = std::move(peers_);
  return world;
}

TcpWorld Meeting::as_first() {
  std::vector<Socket> listeners = listen_as_master();
  std::vector<TcpAddress> addresses;
  if (options_.interfaces.empty()) {
    for (const Socket& listener : listeners) addresses.push_back(local_address(listener));
  } else {
    addresses = own_addresses(options_.interfaces);
  }
  std::vector<TcpEndpoint> endpoints;
  TcpDoor for_peers(listen_for_peers(addresses, endpoints), identity_, options_.check);
  TcpGathering gathering(options_, identity_);
  try {
    TcpDoor for_all(std::move(listeners), identity_, options_.check);
    const Json list = gathering.gather(for_all, hello_of(options_, endpoints));
    take_list(list);
    waited_.restart();
    while (!all_higher_have_come() || !gathering.all_are_connected()) {
      auto visitor = for_peers.wait(left(), gathering.sockets());
      if (visitor) let_in(std::move(*visitor));
      gathering.listen();
      require(left() > 0, "the ranks are not connected with each other within {:.0f} s",
              options_.start_seconds);
    }
    gathering.start();
    return result(list);
  } catch (const Error& error) {
    gathering.fail_all(error.what());
    throw;
  }
}

TcpWorld Meeting::as_other() {
  Socket master = reach_master();
  std::vector<TcpEndpoint> endpoints;
  TcpDoor door(listen_for_peers(addresses_beside(master), endpoints), identity_, options_.check);
  const auto next = [&](double seconds) {
    TcpDoor::Visitor note = receive_note(std::move(master), seconds, identity_, options_.check);
    master = std::move(note.socket);
    require(note.kind != TcpNoteKind::kFailed, "{}", text_in(note.note, "reason"));
    return note;
  };
  Json list;
  try {
    send_note(master, TcpNoteKind::kHello, hello_of(options_, endpoints), identity_, true);
    list = next(options_.start_seconds + kAnswerSeconds).note;
  } catch (const Error& error) {
    fail("rank {} cannot join the run at {}: {}", options_.rank, place(), error.what());
  }
  take_list(list);
  waited_.restart();
  try {
    connect_with_lower(list, master);
    while (!all_higher_have_come()) {
      const std::vector<int> also = {master.get()};
      auto visitor = door.wait(left(), also);
      if (visitor) {
        let_in(std::move(*visitor));
      } else {
        next(0.1 + left());  // only a failure comes now
      }
    }
    send_note(master, TcpNoteKind::kConnected, Json::object(), identity_, false);
  } catch (const Error& error) {
    try {
      send_note(master, TcpNoteKind::kFailed, {{"reason", error.what()}}, identity_, false);
    } catch (const Error&) {  // it has gone
    }
    throw;
  }
  next(options_.start_seconds + kAnswerSeconds);
  return result(list);
}

}  // namespace

TcpWorld meet(const TcpOptions& options) {
  require(options.rank >= 0 && options.rank < options.world_size,
          "rank {} of {} ranks: ranks are numbered from 0", options.rank, options.world_size);
  Meeting meeting(options);
  return options.rank == 0 ? meeting.as_first() : meeting.as_other();
}

}  // namespace onebit::transport
