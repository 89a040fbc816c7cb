// The connections of one rank to all others over TCP, and the thread that moves their bytes. All
// communicators of a rank share them. The thread sleeps until the kernel has something for it, so
// that messages travel while the rank computes.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "onebit/exchange/comm/tcp_connection.h"
#include "onebit/exchange/comm/tcp_rendezvous.h"
#include "onebit/exchange/comm/tcp_status.h"
#include "onebit/ground/base/socket.h"

namespace onebit::comm {

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
  std::atomic<bool> is_ending_{false};
  std::thread thread_;  // last: it uses the others
};

}  // namespace onebit::comm
