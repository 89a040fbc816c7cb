// Ranks as MPI processes. MPI is loaded when it is first needed (mpi_job.h).
#pragma once

#include <cstddef>
#include <memory>
#include <string>

#include "onebit/exchange/comm/communicator.h"

namespace onebit::transport {

// How a message over MPI is divided into pieces, each of which MPI sends as a message.

// Open MPI sends up to 64 KiB over TCP, header included, without asking the receiver first (eager).
// For a longer message it waits for an answer, which on a slow link queues behind the data of the
// other direction: buckets sent whole reach 35 to 75 % of 100 Mb/s, in eager pieces 96 %.
inline constexpr size_t kEagerPieceBytes = 60 * 1024;
// Eager messages are copied until the link accepts them: right for buckets, too much for values.
inline constexpr size_t kMaxEagerBytes = size_t{4} << 20;
inline constexpr size_t kLargestPieceBytes = size_t{1} << 30;  // MPI counts are int

// The largest piece of a message of so many bytes.
constexpr size_t piece_bytes(size_t message_bytes) {
  return message_bytes <= kMaxEagerBytes ? kEagerPieceBytes : kLargestPieceBytes;
}

// Why MPI cannot be used here, and what to do: this onebit is built without it, or a library is
// missing. "" if it can. Loads it.
std::string mpi_problem();
inline bool mpi_is_there() {
  return mpi_problem().empty();
}
// The first line of the library's version text ("Open MPI v4.1.4, ..."), or "" if MPI cannot be
// used.
std::string mpi_version();
// Whether this MPI reports that it accepts pointers to CUDA memory: one that was built without
// reads them as host pointers and crashes. False if it has no such query.
bool mpi_takes_device_memory();

// Owns MPI: initialises it with full thread support and finalises it. A process has at most one,
// and it outlives its communicators. Destruction by an exception ends the whole job. Errors: MPI
// cannot be used, or it does not support calls from several threads.
class MpiEnvironment {
 public:
  MpiEnvironment();
  ~MpiEnvironment();
  MpiEnvironment(const MpiEnvironment&) = delete;
  MpiEnvironment& operator=(const MpiEnvironment&) = delete;

  // A communicator of all processes of the job. Collective.
  std::unique_ptr<comm::Communicator> world();

 private:
  int exceptions_at_start_;
};

}  // namespace onebit::transport
