// Device buffers through NCCL, which is linked, not opened at run time (cmake/OnebitCuda.cmake).
// Implemented in nccl_communicator.cc, or no_nccl.cc without NCCL.
#pragma once

#include <memory>

#include "onebit/comm/communicator.h"

namespace onebit::comm {

bool nccl_is_built();

// Collective. A collective is a group of pairwise sends and receives, so that every transport gives
// the same bits; callers compute sums, in rank order.
std::unique_ptr<Communicator> make_nccl_communicator(std::unique_ptr<Communicator> host,
                                                     Device device);

}  // namespace onebit::comm
