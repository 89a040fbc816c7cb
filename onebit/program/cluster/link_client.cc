#include "onebit/program/cluster/link_client.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/time.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <set>

#include "onebit/ground/base/clock.h"
#include "onebit/ground/base/error.h"
#include "onebit/ground/base/socket.h"
#include "onebit/program/cluster/link_server.h"

namespace onebit::cluster {
namespace {

constexpr int kTickMilliseconds = 50;
constexpr size_t kAtOnce = 512;     // connections: a process may have 1024 files open
constexpr double kTellSeconds = 1;  // between two calls of `progress`
constexpr double kBusyTimes = 5;    // the limit of hosts that have accepted the connection
constexpr int kRoundTrips = 20;
constexpr time_t kPatienceSeconds = 10;
constexpr uint64_t kFirstBytes = uint64_t{64} << 10, kMaxBytes = uint64_t{1} << 30;
constexpr size_t kPieceBytes = size_t{1} << 20;

sockaddr_in address_of(const LinkTarget& target) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<uint16_t>(target.port));
  require(::inet_pton(AF_INET, target.address.c_str(), &address.sin_addr) == 1,
          "{}: is not an IPv4 address", target.address);
  return address;
}

bool connects(const Socket& socket, const LinkTarget& target) {
  const sockaddr_in address = address_of(target);
  return ::connect(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0;
}

// A connection attempt to a target.
class Attempt {
 public:
  explicit Attempt(const LinkTarget& target)
      : target_(target), socket_(::socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0)) {
    if (!socket_.is_open() || (!connects(socket_, target) && errno != EINPROGRESS)) {
      end(reason_of(errno));
    }
  }

  bool is_open() const { return socket_.is_open(); }
  bool is_connected() const { return connected_; }
  const LinkTrial& result() const { return result_; }
  pollfd source() const {
    return {socket_.get(), static_cast<short>(connected_ ? POLLIN : POLLOUT), 0};
  }

  void advance() {
    if (!connected_) {
      int error = 0;
      socklen_t length = sizeof error;
      ::getsockopt(socket_.get(), SOL_SOCKET, SO_ERROR, &error, &length);
      if (error != 0) return end(reason_of(error));
      connected_ = true;
      return;
    }
    std::array<char, kTokenBytes> bytes{};
    const ssize_t count =
        ::recv(socket_.get(), bytes.data(), kTokenBytes - greeting_.size(), MSG_DONTWAIT);
    if (count < 0 && (errno == EAGAIN || errno == EINTR)) return;
    if (count < 0) return end(reason_of(errno));
    greeting_.append(bytes.data(), static_cast<size_t>(count));
    if (greeting_.size() < kTokenBytes && count > 0) return;
    result_.reached = greeting_ == target_.token;
    end(result_.reached ? "" : "another program answers there");
  }

  void end(std::string failure) {
    result_.failure = std::move(failure);
    socket_.close();
  }

 private:
  const LinkTarget& target_;
  Socket socket_;
  bool connected_ = false;
  std::string greeting_;
  LinkTrial result_;
};

// Tells the caller of progress, but not too often.
class Progress {
 public:
  explicit Progress(const std::function<void()>& heard) : heard_(heard) {}
  void tell() {
    if (told_.seconds() < kTellSeconds) return;
    heard_();
    told_.restart();
  }

 private:
  const std::function<void()>& heard_;
  Stopwatch told_;
};

// Returns whether one has made progress.
bool wait_for_any(std::vector<Attempt>& attempts) {
  std::vector<pollfd> sources;
  std::vector<Attempt*> open;
  for (Attempt& attempt : attempts) {
    if (!attempt.is_open()) continue;
    sources.push_back(attempt.source());
    open.push_back(&attempt);
  }
  if (::poll(sources.data(), static_cast<nfds_t>(sources.size()), kTickMilliseconds) <= 0) {
    return false;
  }
  for (size_t i = 0; i < open.size(); ++i) {
    if (sources[i].revents != 0) open[i]->advance();
  }
  return true;
}

// Ends the attempts of groups that have been reached, and returns whether no attempt is open.
bool all_decided(std::vector<Attempt>& attempts, std::span<const LinkTarget> targets) {
  std::set<int> reached;
  for (size_t i = 0; i < attempts.size(); ++i) {
    if (attempts[i].result().reached) reached.insert(targets[i].group);
  }
  bool decided = true;
  for (size_t i = 0; i < attempts.size(); ++i) {
    if (!attempts[i].is_open()) continue;
    if (reached.contains(targets[i].group)) {
      attempts[i].end("");
    } else {
      decided = false;
    }
  }
  return decided;
}

void try_some(std::span<const LinkTarget> targets, double limit_seconds, Progress& progress,
              std::vector<LinkTrial>& trials) {
  std::vector<Attempt> attempts;
  for (const LinkTarget& target : targets) {
    attempts.emplace_back(target);
    // A process that shares its processor with a thousand others connects for a minute.
    progress.tell();
  }
  // Counted in waits without an answer: while this process itself gets no processor, it hears none.
  int idle_ticks = 0;
  while (!all_decided(attempts, targets)) {
    // A port that accepts a connection is open: its program may be waiting for a processor.
    const bool is_busy = std::ranges::all_of(attempts, [](const Attempt& attempt) {
      return !attempt.is_open() || attempt.is_connected();
    });
    if (idle_ticks * 1e-3 * kTickMilliseconds >= limit_seconds * (is_busy ? kBusyTimes : 1)) break;
    ++idle_ticks;
    if (!wait_for_any(attempts)) continue;
    idle_ticks = 0;
    progress.tell();
  }
  for (Attempt& attempt : attempts) {
    if (attempt.is_open()) attempt.end(fmt::format("no answer within {:g} s", limit_seconds));
    trials.push_back(attempt.result());
  }
}

// A blocking connection to one server.
class Line {
 public:
  explicit Line(const LinkTarget& target)
      : target_(target), socket_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    const timeval patience = {.tv_sec = kPatienceSeconds, .tv_usec = 0};
    const int on = 1;
    ::setsockopt(socket_.get(), SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    ::setsockopt(socket_.get(), SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience);
    ::setsockopt(socket_.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    check(connects(socket_, target));
    for (size_t i = 0; i < kTokenBytes; ++i) receive();
  }

  // Sends a message of `bytes`, and returns the seconds until the server has received all of it.
  double send(uint64_t bytes) {
    const Stopwatch running;
    std::string header;
    for (size_t i = 0; i < kLengthBytes; ++i) {
      header += static_cast<char>((bytes >> (8 * (kLengthBytes - 1 - i))) & 0xffU);
    }
    send_all(header);
    piece_.resize(kPieceBytes);
    for (uint64_t left = bytes; left > 0;) {
      const auto part = static_cast<size_t>(std::min<uint64_t>(left, kPieceBytes));
      send_all(std::string_view(piece_).substr(0, part));
      left -= part;
    }
    receive();
    return running.seconds();
  }

 private:
  void check(bool well) const {
    const int reason = errno;
    if (well) return;
    const bool is_timeout = reason == EAGAIN || reason == EINPROGRESS;
    fail("{}: {}", target_.address,
         is_timeout ? "no data was transferred (timeout)" : reason_of(reason));
  }

  void send_all(std::string_view bytes) const {
    while (!bytes.empty()) {
      const ssize_t count = ::send(socket_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
      if (count < 0 && errno == EINTR) continue;
      check(count > 0);
      bytes.remove_prefix(count);
    }
  }

  void receive() const {
    char byte = 0;
    const ssize_t count = ::recv(socket_.get(), &byte, 1, 0);
    require(count != 0, "{}: has closed the connection", target_.address);
    check(count == 1);
  }

  const LinkTarget& target_;
  Socket socket_;
  std::string piece_;
};

}  // namespace

std::vector<LinkTrial> try_links(std::span<const LinkTarget> targets, double limit_seconds,
                                 const std::function<void()>& progress) {
  std::vector<LinkTrial> trials;
  Progress telling(progress);
  for (size_t begin = 0; begin < targets.size();) {
    // Targets of a group stay together.
    size_t end = std::min(begin + kAtOnce, targets.size());
    while (end < targets.size() && targets[end].group == targets[end - 1].group) ++end;
    try_some(targets.subspan(begin, end - begin), limit_seconds, telling, trials);
    begin = end;
    progress();
  }
  return trials;
}

LinkSpeed measure_link(const LinkTarget& target, double enough_seconds) {
  Line line(target);
  std::vector<double> trips;
  for (int i = 0; i < kRoundTrips; ++i) trips.push_back(line.send(1));
  // The median: the first trip waits for caches, some for other processes.
  std::nth_element(trips.begin(), trips.begin() + kRoundTrips / 2, trips.end());
  const double trip = trips[kRoundTrips / 2];
  double seconds = 0;
  uint64_t bytes = kFirstBytes;
  for (seconds = line.send(bytes); seconds < enough_seconds && bytes < kMaxBytes;) {
    bytes *= 2;
    seconds = line.send(bytes);
  }
  // The answer's way back is not part of the time of the message.
  const double sending = std::max(seconds - trip / 2, seconds / 2);
  return {.seconds = trip / 2, .bytes_per_second = static_cast<double>(bytes) / sending};
}

}  // namespace onebit::cluster
