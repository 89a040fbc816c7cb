// What onebit needs of an MPI, as C functions. A shared object per MPI implements them
// (mpi_plugin.cc), and the program loads it when a starter of MPI has started it (mpi_job.h):
// without that it needs no MPI. No type of MPI or of C++ crosses this border, because MPIs disagree
// about theirs, and the program exports nothing.
#pragma once

#include <cstdint>

namespace onebit::transport {

// Changes with the table.
inline constexpr uint32_t kMpiCallsVersion = 1;
inline constexpr int kMpiSuccess = 0;           // of every MPI
inline constexpr int kMpiErrorInBatch = -1000;  // a message of the batch failed: see is_too_long

struct MpiComm;      // a communicator, whose errors are returned, not fatal
struct MpiBatch;     // messages under way
struct MpiEnvelope;  // a message that has arrived and is not received

// Functions that return int give MPI's error code, kMpiSuccess if there is none.
struct MpiCalls {
  uint32_t version;
  int (*library_version)(char* text, int size);
  void (*error_text)(int code, char* text, int size);

  int (*initialize)(int* takes_threads);  // whether it supports calls from several threads
  int (*finalize)();
  void (*abort)();

  int (*duplicate)(const MpiComm* of, MpiComm** made);  // null: of all ranks
  int (*split)(const MpiComm* of, int color, int key, MpiComm** made);
  int (*split_by_machine)(MpiComm** made);
  int (*free_comm)(MpiComm* comm);
  int (*rank)(const MpiComm* comm, int* rank);
  int (*size)(const MpiComm* comm, int* size);
  int (*broadcast)(const MpiComm* comm, int* value);  // of rank 0
  int (*all_gather)(const MpiComm* comm, int value, int* all);

  MpiBatch* (*new_batch)();
  int (*add_receive)(MpiBatch* batch, const MpiComm* comm, void* to, int bytes, int from, int tag);
  int (*add_send)(MpiBatch* batch, const MpiComm* comm, const void* from, int bytes, int to,
                  int tag);
  int (*test)(MpiBatch* batch, int* done);
  // These describe the N-th message that was added, a receive, when test() is done or has failed.
  int (*received_bytes)(const MpiBatch* batch, int index);
  int (*is_too_long)(const MpiBatch* batch, int index);
  // Cancels receives that were not matched.
  void (*abandon)(MpiBatch* batch);
  void (*delete_batch)(MpiBatch* batch);

  // The next message of any rank, or null if there is none. take() also deletes the envelope.
  int (*look)(const MpiComm* comm, int tag, MpiEnvelope** found, int* from, int* bytes);
  int (*take)(MpiEnvelope* envelope, void* to, int bytes);
};

}  // namespace onebit::transport

// The function of the shared object that returns the table.
extern "C" const onebit::transport::MpiCalls* onebit_mpi_calls();
