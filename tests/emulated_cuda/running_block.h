// The block that runs, one at a time: its threads, their turns, its memory.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <functional>
#include <memory>
#include <vector>

#include "tests/emulated_cuda/asynchronous.h"
#include "tests/emulated_cuda/device_language.h"
#include "tests/emulated_cuda/fibre.h"
#include "tests/emulated_cuda/race_detector.h"
#include "tests/emulated_cuda/shared_memory.h"

namespace emulated_cuda {

inline constexpr size_t kLanes = 32, kWarpgroup = 4 * kLanes, kMostThreads = 1024;

enum class State { kReady, kAtBlock, kAtWarp, kEnded };

struct Thread {
  uint3 index{};
  int lane = 0;
  size_t warp = 0;
  State state = State::kReady;
  Fibre* fibre = nullptr;  // while it has begun and has not ended
  Place place;
  unsigned mask = 0;
  bool vote = false;
  Operands operands{};
  AsyncCopies copies;
  AsyncProducts products;
  size_t block_barriers = 0, warp_barriers = 0;  // so far, the latter of whole warps
};

// Whose turn it is: warps in an order, each as far as it gets, its lanes in an order.
struct Turn {
  std::vector<size_t> warps, lanes;
  size_t warp = 0, lane = 0;  // the next of them
};

// What the race detector orders device threads by. A thread that has passed a barrier may be at the
// next one before others have left it: successive ones are two places.
struct Order {
  char begin = 0, end = 0;  // of the grid
  std::array<char, 2> block{};
  std::vector<std::array<char, 2>> warp;
  std::vector<char> part_of_warp;
};

// The block that runs; there is one at a time.
struct Block {
  // What grows while device threads run has its memory before: to the race detector they would have
  // a race for it.
  Block() {
    fibres.reserve(kMostThreads);
    idle.reserve(kMostThreads);
  }

  const std::function<void()>* body = nullptr;
  std::vector<Thread> threads;
  std::vector<WarpOperands> met;  // what the lanes of a warp brought that met last
  int votes = 0;
  Turn turn;
  Thread* current = nullptr;
  SharedMemory shared;
  Order order;
  std::vector<std::unique_ptr<Fibre>> fibres;
  std::vector<Fibre*> idle;
  bool watched = race_detector::watches();  // threads then have a fibre each, by their number
  bool random = false;
  bool copies_late = false;  // a barrier was passed by a thread whose copies products do not see

  size_t warps() const { return (threads.size() + kLanes - 1) / kLanes; }
  size_t end_of(size_t warp) const { return std::min(threads.size(), (warp + 1) * kLanes); }
};

extern Block* const the_block;
inline Block& block() {
  return *the_block;
}

// Frees the lanes of a warp that wait for each other and have all come; false if there are none.
bool release_warp(size_t warp);
// Frees the threads at the block's barrier, where all are that have not ended; false if all have.
bool release_block();
// Fault: the warps of a warpgroup have not called the same products.
void check_warpgroups();

}  // namespace emulated_cuda
