// What all MPI communicators of a process share: errors of MPI calls, and the end of the job when a
// rank fails.
#pragma once

#include <atomic>
#include <mutex>
#include <string>
#include <vector>

#include "onebit/exchange/transport/mpi_calls.h"

namespace onebit::transport {

// The shared object by which this process uses an MPI, loaded when it is first needed.

// Error: mpi_problem() of mpi_communicator.h.
const MpiCalls& mpi();

// A function of the MPI itself, or null if this one does not have it.
void* find_in_mpi(const char* function);

// Throws NetworkError, with MPI's text, unless code is kMpiSuccess.
void check_mpi(int code, const char* call);

// Duplicates `parent`, or with null the communicator of all ranks. Collective.
MpiComm* duplicate_of(const MpiComm* parent);
int rank_in(const MpiComm* comm);
int size_of(const MpiComm* comm);

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

  MpiComm* control_;
  int rank_, world_size_;
  std::mutex mutex_;
  std::atomic<bool> failed_{false};
  int failed_rank_ = -1;
  std::string failed_message_;     // outlives the requests that send it
  MpiBatch* notifying_ = nullptr;  // lives as long as the process
};

}  // namespace onebit::transport
