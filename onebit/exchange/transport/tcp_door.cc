#include "onebit/exchange/transport/tcp_door.h"

#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <utility>

#include "onebit/ground/base/error.h"
#include "onebit/ground/base/log.h"

namespace onebit::transport {
namespace {

constexpr double kPatienceSeconds = 10;  // for a process that has connected and says nothing
constexpr size_t kMostPending = 8192;
constexpr size_t kMostAnswered = 64;
constexpr int kMostWarnings = 8;
constexpr int kTickMilliseconds = 500;

}  // namespace

void TcpDoor::accept_from(const Socket& listener) {
  for (;;) {
    TcpAddress from;
    from.length = sizeof from.bytes;
    Socket socket(::accept4(listener.get(), reinterpret_cast<sockaddr*>(&from.bytes), &from.length,
                            SOCK_NONBLOCK | SOCK_CLOEXEC));
    if (!socket.is_open()) return;
    if (pending_.size() >= kMostPending) continue;
    pending_.push_back(Pending{.socket = std::move(socket),
                               .from = from,
                               .reader = TcpNoteReader(identity_, true),
                               .since = {}});
  }
}

void TcpDoor::refuse(Pending& pending, const std::string& reason) {
  pending.is_over = true;
  if (refused_++ < kMostWarnings) {
    log_warning("a process at {} that wants to join this run is refused: it {}",
                pending.from.text(), reason);
  }
  try {
    send_note(pending.socket, TcpNoteKind::kFailed,
              {{"reason", fmt::format("this process {}", reason)}}, identity_, false);
    // The system discards an answer when a connection is closed that has something left to read.
    std::array<char, 4096> rest{};
    while (::recv(pending.socket.get(), rest.data(), rest.size(), MSG_DONTWAIT) > 0) {
    }
    ::shutdown(pending.socket.get(), SHUT_WR);
    answered_.push_back(std::move(pending.socket));
    if (answered_.size() > kMostAnswered) answered_.pop_front();
  } catch (const Error&) {  // it has gone
  }
}

std::optional<TcpDoor::Visitor> TcpDoor::advance(Pending& pending) {
  try {
    read_into(pending.reader, pending.socket);
    if (!pending.reader.is_complete()) {
      if (pending.since.seconds() > kPatienceSeconds) refuse(pending, "says nothing");
      return std::nullopt;
    }
    Json note = pending.reader.content();
    pending.is_over = true;
    return Visitor{.socket = std::move(pending.socket),
                   .from = pending.from,
                   .kind = pending.reader.kind(),
                   .note = std::move(note)};
  } catch (const TcpRefusal& refusal) {
    refuse(pending, refusal.what());
    if (refusal.is_of_this_run()) {
      fail("the process at {} {}", pending.from.text(), refusal.what());
    }
  } catch (const Error&) {  // a process that has connected and gone is nobody's rank
    pending.is_over = true;
  }
  return std::nullopt;
}

std::optional<TcpDoor::Visitor> TcpDoor::wait(double seconds, std::span<const int> also) {
  for (const Stopwatch waited;;) {
    check_();
    for (Pending& pending : pending_) {
      if (pending.is_over) continue;
      if (std::optional<Visitor> visitor = advance(pending)) return visitor;
    }
    std::erase_if(pending_, [](const Pending& pending) { return pending.is_over; });
    std::vector<pollfd> sources;
    for (const int socket : also) sources.push_back({socket, POLLIN, 0});
    for (const Socket& listener : listeners_) sources.push_back({listener.get(), POLLIN, 0});
    for (const Pending& pending : pending_) sources.push_back({pending.socket.get(), POLLIN, 0});
    const double left = seconds - waited.seconds();
    if (left <= 0) return std::nullopt;
    ::poll(sources.data(), static_cast<nfds_t>(sources.size()),
           std::min(kTickMilliseconds, static_cast<int>(left * 1e3) + 1));
    for (size_t i = 0; i < listeners_.size(); ++i) {
      if (sources[also.size() + i].revents != 0) accept_from(listeners_[i]);
    }
    if (std::any_of(sources.begin(), sources.begin() + static_cast<ptrdiff_t>(also.size()),
                    [](const pollfd& source) { return source.revents != 0; })) {
      return std::nullopt;
    }
  }
}

void send_note(const Socket& socket, TcpNoteKind kind, const Json& content,
               const TcpIdentity& identity, bool shows_token) {
  constexpr int kMilliseconds = 10'000;
  const std::string bytes = note_bytes(kind, json_text(content), identity, shows_token);
  for (size_t at = 0; at < bytes.size();) {
    const ssize_t sent =
        ::send(socket.get(), bytes.data() + at, bytes.size() - at, MSG_NOSIGNAL | MSG_DONTWAIT);
    const int reason = errno;
    if (sent >= 0) {
      at += static_cast<size_t>(sent);
      continue;
    }
    if (reason == EINTR) continue;
    require(reason == EAGAIN || reason == EWOULDBLOCK, "{}", reason_of(reason));
    pollfd source{socket.get(), POLLOUT, 0};
    require(::poll(&source, 1, kMilliseconds) > 0, "it does not read what it is sent");
  }
}

void read_into(TcpNoteReader& reader, const Socket& socket) {
  while (!reader.is_complete()) {
    const std::span<char> space = reader.space();
    const ssize_t count = ::recv(socket.get(), space.data(), space.size(), MSG_DONTWAIT);
    const int reason = errno;
    if (count < 0 && reason == EINTR) continue;
    if (count < 0 && (reason == EAGAIN || reason == EWOULDBLOCK)) return;
    require(count >= 0, "{}", reason_of(reason));
    require(count > 0, "it closed the connection");
    reader.arrived(static_cast<size_t>(count));
  }
}

TcpDoor::Visitor receive_note(Socket socket, double seconds, const TcpIdentity& identity,
                              const std::function<void()>& check) {
  TcpNoteReader reader(identity, false);
  for (const Stopwatch waited; !reader.is_complete();) {
    check();
    read_into(reader, socket);
    if (reader.is_complete()) break;
    const double left = seconds - waited.seconds();
    require(left > 0, "it does not answer within {:.0f} s", seconds);
    pollfd source{socket.get(), POLLIN, 0};
    ::poll(&source, 1, std::min(kTickMilliseconds, static_cast<int>(left * 1e3) + 1));
  }
  return {.socket = std::move(socket), .from = {}, .kind = reader.kind(), .note = reader.content()};
}

}  // namespace onebit::transport
