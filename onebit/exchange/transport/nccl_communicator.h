// Device buffers through NCCL, which is loaded with the first message (nccl_library.cc).
// Implemented in nccl_communicator.cc, or no_nccl.cc without NCCL.
#pragma once

#include <memory>
#include <string>

#include "onebit/exchange/comm/communicator.h"

namespace onebit::transport {

bool nccl_is_built();
// The version that is loaded, or why there is none. Loads it.
std::string describe_nccl();

// Collective. A collective is a group of pairwise sends and receives, so that every transport gives
// the same bits; callers compute sums, in rank order.
// The resources of NCCL are allocated with its first message between devices; errors of NCCL
// (two ranks on one device) come then.
std::unique_ptr<comm::Communicator> make_nccl_communicator(std::unique_ptr<comm::Communicator> host,
                                                           Device device);
// How many communicators of NCCL this process has made, for the tests.
int64_t nccl_communicators_made();

}  // namespace onebit::transport
