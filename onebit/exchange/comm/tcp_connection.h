// The connection of this rank and another one over TCP. Thread-safe: ranks' threads post messages,
// and the thread of the mesh calls read() and write() when the socket is ready for it.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>

#include "onebit/exchange/comm/tcp_receiver.h"
#include "onebit/exchange/comm/tcp_sender.h"
#include "onebit/exchange/comm/tcp_status.h"
#include "onebit/ground/base/socket.h"

namespace onebit::comm {

class TcpConnection {
 public:
  // Adds the socket, which must not block, to `watcher`, an epoll, with the peer's number.
  TcpConnection(Socket socket, int rank, int peer, int watcher, TcpStatus& status);

  // One message in each direction, where an empty one does not travel.
  void post(const TcpKey& key, const std::shared_ptr<TcpTransfer>& transfer,
            std::span<const std::byte> send, std::span<std::byte> receive);
  void withdraw(const TcpTransfer& transfer);
  void announce_failure(int failed_rank, const std::string& message);
  void say_farewell();
  // Whether the kernel has everything that this rank has to say. Does not lock.
  bool is_flushed() const { return closed_ || is_flushed_; }

  // Takes what has arrived. `lost` says why there is no connection any more, or "" if the peer had
  // said farewell before. `failure` is what the peer has announced.
  struct News {
    bool is_closed = false;
    std::string lost;
    std::optional<TcpReceiver::Failure> failure;
  };
  News read();
  void write();
  // Whether the peer has closed the connection.
  bool is_closed() const { return closed_; }

 private:
  void flush();
  void watch(bool for_writing);
  News close(const std::string& reason);

  std::mutex mutex_;
  Socket socket_;
  int peer_, watcher_;
  TcpSender sender_;
  TcpReceiver receiver_;
  bool watches_writing_ = false, says_farewell_ = false;
  std::atomic<bool> closed_{false}, is_flushed_{true};
};

}  // namespace onebit::comm
