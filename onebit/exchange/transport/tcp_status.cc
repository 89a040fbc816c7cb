#include "onebit/exchange/transport/tcp_status.h"

#include <chrono>

#include "onebit/ground/base/error.h"

namespace onebit::transport {

void TcpStatus::message_done(TcpTransfer& transfer) {
  if (transfer.left.fetch_sub(1) == 1) wake();
}

void TcpStatus::refuse(TcpTransfer& transfer, const std::string& problem) {
  const std::lock_guard lock(mutex_);
  if (transfer.problem.empty()) transfer.problem = problem;
  changed_.notify_all();
}

void TcpStatus::peer_has_left(TcpTransfer& transfer, int peer) {
  const std::lock_guard lock(mutex_);
  transfer.missing_peer = peer;
  changed_.notify_all();
}

bool TcpStatus::set_failure(int rank, const std::string& message) {
  const std::lock_guard lock(mutex_);
  if (failed_rank_ >= 0) return false;
  failed_message_ = message;
  failed_rank_ = rank;
  changed_.notify_all();
  return true;
}

bool TcpStatus::has_failed() {
  return failed_rank_ >= 0;
}

void TcpStatus::wake() {
  const std::lock_guard lock(mutex_);
  changed_.notify_all();
}

std::pair<int, std::string> TcpStatus::failure() {
  const std::lock_guard lock(mutex_);
  return {failed_rank_, failed_message_};
}

bool TcpStatus::finished_or_throw(const TcpTransfer& transfer,
                                  const std::atomic<bool>& interrupted) {
  if (transfer.left == 0) return true;
  if (failed_rank_ >= 0) throw comm::PeerError(failed_rank_, failed_message_);
  require(transfer.problem.empty(), "{}", transfer.problem);
  require(!interrupted, "rank {}: interrupted in {}", rank_, transfer.operation);
  if (transfer.missing_peer < 0) return false;
  failed_message_ =
      fmt::format("it ended while rank {} waited for it in {}", rank_, transfer.operation);
  failed_rank_ = transfer.missing_peer;
  throw comm::PeerError(failed_rank_, failed_message_);
}

bool TcpStatus::test(const TcpTransfer& transfer, const std::atomic<bool>& interrupted) {
  if (transfer.left == 0) return true;
  const std::lock_guard lock(mutex_);
  return finished_or_throw(transfer, interrupted);
}

void TcpStatus::wait(const TcpTransfer& transfer, const std::atomic<bool>& interrupted) {
  if (transfer.left == 0) return;
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return finished_or_throw(transfer, interrupted); });
}

void TcpStatus::check_peers() {
  if (failed_rank_ < 0) return;
  const std::lock_guard lock(mutex_);
  if (failed_rank_ != rank_) throw comm::PeerError(failed_rank_, failed_message_);
}

bool TcpStatus::wait_for(double seconds, const std::function<bool()>& condition) {
  std::unique_lock lock(mutex_);
  return changed_.wait_for(lock, std::chrono::duration<double>(seconds), condition);
}

bool TcpStatus::wait_for_failure(double seconds) {
  return wait_for(seconds, [this] { return failed_rank_ >= 0; });
}

}  // namespace onebit::transport
