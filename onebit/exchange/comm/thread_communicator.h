// Ranks as threads of one process, which runs everywhere, also under sanitizers.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "onebit/exchange/comm/communicator.h"

namespace onebit::comm {

class ThreadGroup;  // the state shared by the ranks of one world

// Makes the communicators of a world of `world_size` ranks, one per thread.
std::vector<std::unique_ptr<Communicator>> make_thread_world(int world_size);

// A world of one rank.
std::unique_ptr<Communicator> make_single_rank();

// Runs `work` on `world_size` threads, one per rank, and joins them. If ranks failed, rethrows the
// exception of the rank that failed first.
void run_thread_world(int world_size, const std::function<void(Communicator&)>& work);

}  // namespace onebit::comm
