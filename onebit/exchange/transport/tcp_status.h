// What the waits of a rank over TCP look at: transfers that have completed, and the failure of a
// rank. Connections report here, from any thread.
#pragma once

#include <atomic>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>

#include "onebit/exchange/comm/communicator.h"

namespace onebit::transport {

// One collective of this rank.
struct TcpTransfer {
  std::string_view operation;
  std::atomic<int> left{0};  // messages, of both directions, that are not complete
  // Under the mutex of TcpStatus:
  std::string problem;    // the ranks disagree about this collective
  int missing_peer = -1;  // a rank that has finished without this collective
};

class TcpStatus {
 public:
  explicit TcpStatus(int rank) : rank_(rank) {}

  void message_done(TcpTransfer& transfer);
  void refuse(TcpTransfer& transfer, const std::string& problem);
  void peer_has_left(TcpTransfer& transfer, int peer);
  // Returns whether this is the first failure. Only that one is kept.
  bool set_failure(int rank, const std::string& message);
  bool has_failed();
  // The rank that has failed, and its message.
  std::pair<int, std::string> failure();
  void wake();

  // Whether the transfer is complete. Error: it cannot be completed.
  bool test(const TcpTransfer& transfer, const std::atomic<bool>& interrupted);
  void wait(const TcpTransfer& transfer, const std::atomic<bool>& interrupted);
  // Throws PeerError if another rank has failed.
  void check_peers();
  // Waits until `condition`, which something that calls wake() makes true. Returns whether it is.
  bool wait_for(double seconds, const std::function<bool()>& condition);
  bool wait_for_failure(double seconds);

 private:
  bool finished_or_throw(const TcpTransfer& transfer, const std::atomic<bool>& interrupted);

  int rank_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::atomic<int> failed_rank_{-1};
  std::string failed_message_;
};

}  // namespace onebit::transport
