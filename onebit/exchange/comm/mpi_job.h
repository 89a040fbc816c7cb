// What all MPI communicators of a process share: errors of MPI calls, and the end of the job when a
// rank fails.
#pragma once

#include <mpi.h>

#include <atomic>
#include <mutex>
#include <string>
#include <vector>

namespace onebit::comm {

// Throws NetworkError, with MPI's text, unless code is MPI_SUCCESS.
void check_mpi(int code, const char* call);

// Duplicates `parent` with errors returned instead of fatal. Collective.
MPI_Comm duplicate_of(MPI_Comm parent);
int rank_in(MPI_Comm comm);
int size_of(MPI_Comm comm);

// One instance per process. May be called from several threads.
class MpiJob {
 public:
  // How long a rank that did not fail waits for the failed one to end the job.
  static constexpr double kYieldSeconds = 10;

  // Makes a separate communicator for announcing failures. Collective.
  MpiJob();

  int rank() const { return rank_; }
  bool failed() const { return failed_; }

  // Throws PeerError once a rank has announced that it failed.
  void check_peers();

  // Prints the message, unless another rank has already failed, notifies the other ranks, gives
  // them a moment to unwind and ends all processes of the job.
  [[noreturn]] void end(const std::string& message);

 private:
  void await_same_failure();
  void announce(const std::string& message);
  void receive_failure();

  MPI_Comm control_;
  int rank_, world_size_;
  std::mutex mutex_;
  std::atomic<bool> failed_{false};
  int failed_rank_ = -1;
  std::string failed_message_;  // outlives the requests that send it
  std::vector<MPI_Request> notifying_;
};

}  // namespace onebit::comm
