// The shared object for one MPI: mpi_calls.h by means of its mpi.h. It is linked with that MPI and
// with nothing of onebit.
#include <mpi.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <vector>

#include "onebit/exchange/transport/mpi_calls.h"

namespace onebit::transport {

struct MpiComm {
  MPI_Comm comm = MPI_COMM_NULL;
};

struct MpiBatch {
  std::vector<MPI_Request> requests;
  std::vector<MPI_Status> statuses;
  std::vector<bool> receives;
};

struct MpiEnvelope {
  MPI_Message message;
};

namespace {

void copy_text(const char* from, int length, char* to, int size) {
  const auto bytes = static_cast<size_t>(std::clamp(length, 0, size - 1));
  std::memcpy(to, from, bytes);
  to[bytes] = '\0';
}

int library_version(char* text, int size) {
  std::array<char, MPI_MAX_LIBRARY_VERSION_STRING> own{};
  int length = 0;
  const int code = MPI_Get_library_version(own.data(), &length);
  copy_text(own.data(), length, text, size);
  return code;
}

void error_text(int code, char* text, int size) {
  std::array<char, MPI_MAX_ERROR_STRING> own{};
  int length = 0;
  MPI_Error_string(code, own.data(), &length);
  copy_text(own.data(), length, text, size);
}

int initialize(int* takes_threads) {
  int provided = MPI_THREAD_SINGLE;
  const int code = MPI_Init_thread(nullptr, nullptr, MPI_THREAD_MULTIPLE, &provided);
  *takes_threads = provided >= MPI_THREAD_MULTIPLE ? 1 : 0;
  return code;
}

void abort_all() {
  MPI_Abort(MPI_COMM_WORLD, 1);
}

int hand_over(int code, MPI_Comm comm, MpiComm** made) {
  if (code != MPI_SUCCESS) return code;
  *made = new MpiComm{comm};
  return MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
}

MPI_Comm world_or(const MpiComm* comm) {
  return comm == nullptr ? MPI_COMM_WORLD : comm->comm;
}

int duplicate(const MpiComm* of, MpiComm** made) {
  MPI_Comm fresh = MPI_COMM_NULL;
  const int code = MPI_Comm_dup(world_or(of), &fresh);
  return hand_over(code, fresh, made);
}

int split(const MpiComm* of, int color, int key, MpiComm** made) {
  MPI_Comm part = MPI_COMM_NULL;
  const int code = MPI_Comm_split(of->comm, color, key, &part);
  return hand_over(code, part, made);
}

int split_by_machine(MpiComm** made) {
  MPI_Comm machine = MPI_COMM_NULL;
  const int code =
      MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &machine);
  return hand_over(code, machine, made);
}

int free_comm(MpiComm* comm) {
  const int code = MPI_Comm_free(&comm->comm);
  delete comm;
  return code;
}

int rank_in(const MpiComm* comm, int* rank) {
  return MPI_Comm_rank(comm->comm, rank);
}

int size_of(const MpiComm* comm, int* size) {
  return MPI_Comm_size(comm->comm, size);
}

int broadcast(const MpiComm* comm, int* value) {
  return MPI_Bcast(value, 1, MPI_INT, 0, comm->comm);
}

int all_gather(const MpiComm* comm, int value, int* all) {
  return MPI_Allgather(&value, 1, MPI_INT, all, 1, MPI_INT, comm->comm);
}

MpiBatch* new_batch() {
  return new MpiBatch;
}

int add_receive(MpiBatch* batch, const MpiComm* comm, void* to, int bytes, int from, int tag) {
  batch->receives.push_back(true);
  return MPI_Irecv(to, bytes, MPI_BYTE, from, tag, comm->comm,
                   &batch->requests.emplace_back(MPI_REQUEST_NULL));
}

int add_send(MpiBatch* batch, const MpiComm* comm, const void* from, int bytes, int to, int tag) {
  batch->receives.push_back(false);
  return MPI_Isend(from, bytes, MPI_BYTE, to, tag, comm->comm,
                   &batch->requests.emplace_back(MPI_REQUEST_NULL));
}

int test(MpiBatch* batch, int* done) {
  batch->statuses.resize(batch->requests.size());
  const int code = MPI_Testall(static_cast<int>(batch->requests.size()), batch->requests.data(),
                               done, batch->statuses.data());
  return code == MPI_ERR_IN_STATUS ? kMpiErrorInBatch : code;
}

int received_bytes(const MpiBatch* batch, int index) {
  int bytes = 0;
  MPI_Get_count(&batch->statuses[static_cast<size_t>(index)], MPI_BYTE, &bytes);
  return bytes;
}

int is_too_long(const MpiBatch* batch, int index) {
  return batch->statuses[static_cast<size_t>(index)].MPI_ERROR == MPI_ERR_TRUNCATE ? 1 : 0;
}

void abandon(MpiBatch* batch) {
  for (size_t i = 0; i < batch->requests.size(); ++i) {
    if (batch->requests[i] == MPI_REQUEST_NULL) continue;
    if (batch->receives[i]) MPI_Cancel(&batch->requests[i]);
    MPI_Request_free(&batch->requests[i]);
  }
}

void delete_batch(MpiBatch* batch) {
  delete batch;
}

int look(const MpiComm* comm, int tag, MpiEnvelope** found, int* from, int* bytes) {
  int is_there = 0;
  MPI_Message message;
  MPI_Status status;
  *found = nullptr;
  const int code = MPI_Improbe(MPI_ANY_SOURCE, tag, comm->comm, &is_there, &message, &status);
  if (code != MPI_SUCCESS || is_there == 0) return code;
  *found = new MpiEnvelope{message};
  *from = status.MPI_SOURCE;
  return MPI_Get_count(&status, MPI_BYTE, bytes);
}

int take(MpiEnvelope* envelope, void* to, int bytes) {
  const int code = MPI_Mrecv(to, bytes, MPI_BYTE, &envelope->message, MPI_STATUS_IGNORE);
  delete envelope;
  return code;
}

constexpr MpiCalls kCalls = {.version = kMpiCallsVersion,
                             .library_version = library_version,
                             .error_text = error_text,
                             .initialize = initialize,
                             .finalize = MPI_Finalize,
                             .abort = abort_all,
                             .duplicate = duplicate,
                             .split = split,
                             .split_by_machine = split_by_machine,
                             .free_comm = free_comm,
                             .rank = rank_in,
                             .size = size_of,
                             .broadcast = broadcast,
                             .all_gather = all_gather,
                             .new_batch = new_batch,
                             .add_receive = add_receive,
                             .add_send = add_send,
                             .test = test,
                             .received_bytes = received_bytes,
                             .is_too_long = is_too_long,
                             .abandon = abandon,
                             .delete_batch = delete_batch,
                             .look = look,
                             .take = take};

}  // namespace
}  // namespace onebit::transport

extern "C" const onebit::transport::MpiCalls* onebit_mpi_calls() {
  return &onebit::transport::kCalls;
}
