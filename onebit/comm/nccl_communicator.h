// Device buffers through NCCL, which is linked, not opened at run time (cmake/OnebitCuda.cmake).
// nccl_communicator.cc, or no_nccl.cc where NCCL is not built in.
#pragma once

#include <memory>

#include "onebit/comm/communicator.h"

namespace onebit::comm {

bool nccl_is_built();

// Collective. A collective is a group of sends and receives between pairs, so that every transport
// gives the same bits; sums are made by the callers, in rank order.
std::unique_ptr<Communicator> make_nccl_communicator(std::unique_ptr<Communicator> host,
                                                     Device device);

}  // namespace onebit::comm
