// Replaces nccl_communicator.cc in a build without NCCL.
#include "onebit/exchange/transport/nccl_communicator.h"
#include "onebit/ground/base/error.h"

namespace onebit::transport {

bool nccl_is_built() {
  return false;
}

std::string describe_nccl() {
  return "not built in";
}

std::unique_ptr<comm::Communicator> make_nccl_communicator(std::unique_ptr<comm::Communicator>,
                                                           Device) {
  fail(
      "this onebit is built without NCCL: install it with the CUDA toolkit and build again with "
      "-DONEBIT_CUDA=ON, or set optimizer.params.comm_backend_name to \"mpi\"");
}

int64_t nccl_communicators_made() {
  return 0;
}

}  // namespace onebit::transport
