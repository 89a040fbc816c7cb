// The running block (one at a time): its threads, their turns, its memory.
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
  Fibre* fibre = nullptr;  // while the thread runs
  Place place;
  unsigned mask = 0;
  bool vote = false;
  Operands operands{};
  AsyncCopies copies;
  AsyncProducts products;
  size_t block_barriers = 0, warp_barriers = 0;  // passed so far, the latter of whole warps
};

// The order of warps and lanes. Each warp runs until all its lanes wait or have ended.
struct Turn {
  std::vector<size_t> warps, lanes;
  size_t warp = 0, lane = 0;  // the next of them
};

// The addresses by which the race detector orders device threads. A thread may reach the next
// barrier before others have left the last one, so successive barriers alternate between two.
struct Order {
  char begin = 0, end = 0;  // of the grid
  std::array<char, 2> block{};
  std::vector<std::array<char, 2>> warp;
  std::vector<char> part_of_warp;
};

struct Block {
  // Lists that grow while device threads run are allocated here: the race detector would report a
  // race if device threads allocated memory for them.
  Block() {
    fibres.reserve(kMostThreads);
    idle.reserve(kMostThreads);
  }

  const std::function<void()>* body = nullptr;
  std::vector<Thread> threads;
  std::vector<WarpOperands> met;  // operands of each warp's last collective
  int votes = 0;
  Turn turn;
  Thread* current = nullptr;
  SharedMemory shared;
  Order order;
  std::vector<std::unique_ptr<Fibre>> fibres;
  std::vector<Fibre*> idle;
  bool watched = race_detector::watches();  // then fibres are not shared by threads
  bool random = false;
  bool copies_late = false;  // a thread passed a barrier while its copies were hidden from products

  size_t warps() const { return (threads.size() + kLanes - 1) / kLanes; }
  size_t end_of(size_t warp) const { return std::min(threads.size(), (warp + 1) * kLanes); }
};

extern Block* const the_block;
inline Block& block() {
  return *the_block;
}

// Releases lanes of a warp that have all reached their collective. Returns false without any.
bool release_warp(size_t warp);
// Releases the threads at the block's barrier once all running ones are there, false if all ended.
bool release_block();
// Fault: the warps of a warpgroup have called different products.
void check_warpgroups();

}  // namespace emulated_cuda
