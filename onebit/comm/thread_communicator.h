// Ranks as threads of one process: runs everywhere and under sanitizers.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "onebit/comm/communicator.h"

namespace onebit::comm {

class ThreadGroup;  // what the ranks of one world share

// Makes the ends of a world of `world_size` ranks, one for each thread.
std::vector<std::unique_ptr<Communicator>> make_thread_world(int world_size);

// A world of one rank.
std::unique_ptr<Communicator> make_single_rank();

// Runs `work` on `world_size` threads, one a rank, and joins them. If ranks failed, rethrows the
// exception of the one that failed first.
void run_thread_world(int world_size, const std::function<void(Communicator&)>& work);

}  // namespace onebit::comm
