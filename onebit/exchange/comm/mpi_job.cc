#include "onebit/exchange/comm/mpi_job.h"

#include <array>
#include <chrono>
#include <cstdio>
#include <exception>
#include <string_view>
#include <thread>

#include "onebit/exchange/comm/communicator.h"
#include "onebit/ground/base/clock.h"
#include "onebit/ground/base/error.h"
#include "onebit/ground/base/printable.h"

namespace onebit::comm {
namespace {

constexpr int kFailureTag = 2;
constexpr size_t kLongestMessage = 4096;
constexpr double kGraceSeconds = 1;
constexpr double kDeferSeconds = 1;

}  // namespace

void check_mpi(int code, const char* call) {
  if (code == MPI_SUCCESS) return;
  std::array<char, MPI_MAX_ERROR_STRING> text{};
  int length = 0;
  MPI_Error_string(code, text.data(), &length);
  throw NetworkError(
      fmt::format("{}: {}", call, std::string_view(text.data(), static_cast<size_t>(length))));
}

MPI_Comm duplicate_of(MPI_Comm parent) {
  MPI_Comm fresh = MPI_COMM_NULL;
  check_mpi(MPI_Comm_dup(parent, &fresh), "MPI_Comm_dup");
  check_mpi(MPI_Comm_set_errhandler(fresh, MPI_ERRORS_RETURN), "MPI_Comm_set_errhandler");
  return fresh;
}

int rank_in(MPI_Comm comm) {
  int rank = 0;
  check_mpi(MPI_Comm_rank(comm, &rank), "MPI_Comm_rank");
  return rank;
}

int size_of(MPI_Comm comm) {
  int size = 1;
  check_mpi(MPI_Comm_size(comm, &size), "MPI_Comm_size");
  return size;
}

MpiJob::MpiJob()
    : control_(duplicate_of(MPI_COMM_WORLD)),
      rank_(rank_in(control_)),
      world_size_(size_of(control_)) {}

void MpiJob::check_peers() {
  const std::lock_guard lock(mutex_);
  if (!failed_) receive_failure();
  if (failed_) throw PeerError(failed_rank_, failed_message_);
}

void MpiJob::end(const std::string& message) {
  await_same_failure();
  double timeout_seconds = kGraceSeconds;
  {
    const std::lock_guard lock(mutex_);
    if (!failed_) receive_failure();
    if (!failed_) announce(message.substr(0, kLongestMessage));
    // The failed rank aborts for all; the other ranks do so only if it does not.
    if (failed_rank_ != rank_) timeout_seconds += kYieldSeconds;
  }
  const Stopwatch stopwatch;
  while (stopwatch.seconds() < timeout_seconds) {
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
    const std::lock_guard lock(mutex_);  // the thread that writes a checkpoint can fail as well
    int notified = 0;
    MPI_Testall(static_cast<int>(notifying_.size()), notifying_.data(), &notified,
                MPI_STATUSES_IGNORE);
  }
  MPI_Abort(MPI_COMM_WORLD, 1);
  std::terminate();
}

// An error in a recipe or a file occurs on every rank: rank 0 reports it, and the other ranks wait
// briefly for its report.
void MpiJob::await_same_failure() {
  const Stopwatch stopwatch;
  while (rank_ > 0 && stopwatch.seconds() < kDeferSeconds) {
    {
      const std::lock_guard lock(mutex_);
      if (!failed_) receive_failure();
      if (failed_) return;
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
}

void MpiJob::announce(const std::string& message) {
  failed_ = true;
  failed_rank_ = rank_;
  failed_message_ = message;
  std::fprintf(stderr, "onebit: rank %d failed: %s\n", rank_, printable(message).c_str());
  std::fflush(stderr);
  for (int peer = 0; peer < world_size_; ++peer) {
    MPI_Request request = MPI_REQUEST_NULL;
    if (peer != rank_ &&
        MPI_Isend(failed_message_.data(), static_cast<int>(failed_message_.size()), MPI_CHAR, peer,
                  kFailureTag, control_, &request) == MPI_SUCCESS) {
      notifying_.push_back(request);
    }
  }
}

void MpiJob::receive_failure() {
  int found = 0;
  MPI_Message envelope;
  MPI_Status status;
  MPI_Improbe(MPI_ANY_SOURCE, kFailureTag, control_, &found, &envelope, &status);
  if (!found) return;
  int length = 0;
  MPI_Get_count(&status, MPI_CHAR, &length);
  std::string text(static_cast<size_t>(length), '\0');
  MPI_Mrecv(text.data(), length, MPI_CHAR, &envelope, MPI_STATUS_IGNORE);
  failed_rank_ = status.MPI_SOURCE;
  failed_message_ = text;
  failed_ = true;
}

}  // namespace onebit::comm
