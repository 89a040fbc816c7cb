// The connections of one rank to all others over TCP, and the thread that moves their bytes. All
// communicators of a rank share them. The thread sleeps until the kernel has something for it, so
// that messages travel while the rank computes.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "onebit/exchange/transport/tcp_messages.h"
#include "onebit/exchange/transport/tcp_rendezvous.h"
#include "onebit/exchange/transport/tcp_status.h"
#include "onebit/ground/base/socket.h"

namespace onebit::transport {

// The connection of this rank and another one over TCP. Thread-safe: ranks' threads post messages,
// and the thread of the mesh calls read() and write() when the socket is ready for it.
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

class TcpMesh {
 public:
  TcpMesh(int rank, std::vector<TcpPeer> peers);
  // Says farewell to the other ranks and waits a moment until they have done so too, except after
  // an error, which they then learn.
  ~TcpMesh();
  TcpMesh(const TcpMesh&) = delete;
  TcpMesh& operator=(const TcpMesh&) = delete;

  int rank() const { return rank_; }
  int world_size() const { return static_cast<int>(peers_.size()); }
  TcpStatus& status() { return status_; }
  TcpConnection& connection(int peer) { return *connections_[static_cast<size_t>(peer)]; }

  void withdraw(const TcpTransfer& transfer);
  // Says farewell to the other ranks before the end of this mesh.
  void leave();
  bool has_left() const { return has_left_; }
  // Tells all ranks that this one has failed, unless one has before.
  void fail_own(const std::string& message);

 private:
  void run();
  void serve(int peer, uint32_t events);
  void fail_all(int failed_rank, const std::string& message);
  template <typename Body>
  void for_all(const Body& body);

  int rank_;
  std::vector<TcpPeer> peers_;
  TcpStatus status_;
  Socket watcher_, end_;  // an epoll, and an event that ends the thread
  std::vector<std::unique_ptr<TcpConnection>> connections_;
  int exceptions_at_start_;
  std::atomic<bool> has_left_{false}, is_ending_{false};
  std::thread thread_;  // last: it uses the others
};

}  // namespace onebit::transport
