// The functions of NCCL, which is loaded when the first of them is called. Where it is missing,
// they report ncclSystemError, and its text is what to do.
#include <nccl.h>

#include "onebit/ground/base/shared_library.h"

namespace {

onebit::SharedLibrary& nccl() {
  static auto& library = *new onebit::SharedLibrary(
      ONEBIT_NCCL_PATH,
      "install NCCL, or name the folder that has it in LD_LIBRARY_PATH (PyTorch's is "
      "site-packages/nvidia/nccl/lib)");
  return library;
}

template <auto declared, class... Arguments>
ncclResult_t call(const char* name, Arguments... arguments) {
  return onebit::call_of<declared>(nccl(), name, ncclSystemError, arguments...);
}

}  // namespace

const char* ncclGetErrorString(ncclResult_t status) {
  const char* const problem = nccl().problem();
  if (*problem != '\0') return problem;
  return onebit::call_of<ncclGetErrorString>(nccl(), __func__, "", status);
}

const char* ncclGetLastError(ncclComm_t comm) {
  return onebit::call_of<ncclGetLastError>(nccl(), __func__, "", comm);
}

ncclResult_t ncclGetVersion(int* version) {
  return call<ncclGetVersion>(__func__, version);
}

ncclResult_t ncclGetUniqueId(ncclUniqueId* id) {
  return call<ncclGetUniqueId>(__func__, id);
}

ncclResult_t ncclCommInitRankConfig(ncclComm_t* comm, int ranks, ncclUniqueId id, int rank,
                                    ncclConfig_t* config) {
  return call<ncclCommInitRankConfig>(__func__, comm, ranks, id, rank, config);
}

ncclResult_t ncclCommDestroy(ncclComm_t comm) {
  return call<ncclCommDestroy>(__func__, comm);
}

ncclResult_t ncclCommAbort(ncclComm_t comm) {
  return call<ncclCommAbort>(__func__, comm);
}

ncclResult_t ncclCommGetAsyncError(ncclComm_t comm, ncclResult_t* status) {
  return call<ncclCommGetAsyncError>(__func__, comm, status);
}

ncclResult_t ncclGroupStart() {
  return call<ncclGroupStart>(__func__);
}

ncclResult_t ncclGroupEnd() {
  return call<ncclGroupEnd>(__func__);
}

ncclResult_t ncclSend(const void* from, size_t count, ncclDataType_t type, int peer,
                      ncclComm_t comm, cudaStream_t stream) {
  return call<ncclSend>(__func__, from, count, type, peer, comm, stream);
}

ncclResult_t ncclRecv(void* to, size_t count, ncclDataType_t type, int peer, ncclComm_t comm,
                      cudaStream_t stream) {
  return call<ncclRecv>(__func__, to, count, type, peer, comm, stream);
}
