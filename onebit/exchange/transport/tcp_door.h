// Where a rank listens until all ranks are connected: lets in the ranks of its run, refuses all
// others, and waits for none of them alone.
#pragma once

#include <deque>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "onebit/exchange/transport/tcp_addresses.h"
#include "onebit/exchange/transport/tcp_protocol.h"
#include "onebit/ground/base/clock.h"
#include "onebit/ground/base/json.h"
#include "onebit/ground/base/socket.h"

namespace onebit::transport {

class TcpDoor {
 public:
  // `check` is called while the door waits (TcpOptions).
  TcpDoor(std::vector<Socket> listeners, TcpIdentity identity, std::function<void()> check)
      : listeners_(std::move(listeners)),
        identity_(std::move(identity)),
        check_(std::move(check)) {}

  struct Visitor {
    Socket socket;
    TcpAddress from;
    TcpNoteKind kind = TcpNoteKind::kHello;
    Json note;
  };
  // The next visitor of this run, or none after `seconds`, or earlier if one of the sockets `also`
  // has something to read. Error: the visitor is of another version of onebit.
  std::optional<Visitor> wait(double seconds, std::span<const int> also);

 private:
  // A process that has connected and has not said everything.
  struct Pending {
    Socket socket;
    TcpAddress from;
    TcpNoteReader reader;
    Stopwatch since;
    bool is_over = false;
  };

  void accept_from(const Socket& listener);
  std::optional<Visitor> advance(Pending& pending);
  void refuse(Pending& pending, const std::string& reason);

  std::vector<Socket> listeners_;
  TcpIdentity identity_;
  std::function<void()> check_;
  std::vector<Pending> pending_;
  std::deque<Socket> answered_;  // of processes that were refused, until they have read why
  int refused_ = 0;
};

// Sends a note to a process that reads it, or will. Error: it has gone.
void send_note(const Socket& socket, TcpNoteKind kind, const Json& content,
               const TcpIdentity& identity, bool shows_token);
// Reads what the note lacks and has arrived. Error: the connection is closed.
void read_into(TcpNoteReader& reader, const Socket& socket);
// The next note on a connection that this rank has made. Errors: the other end closes it, sends
// something else, or nothing in `seconds`. `check` is called meanwhile.
TcpDoor::Visitor receive_note(Socket socket, double seconds, const TcpIdentity& identity,
                              const std::function<void()>& check);

}  // namespace onebit::transport
