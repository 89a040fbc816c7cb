#include "tests/emulated_cuda/thread_block.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <numeric>
#include <vector>

#include "tests/emulated_cuda/fibre.h"
#include "tests/emulated_cuda/schedule.h"
#include "tests/emulated_cuda/shared_memory.h"

namespace emulated_cuda {
namespace {

constexpr size_t kLanes = 32;

enum class State { kReady, kAtBlock, kAtWarp, kEnded };

struct AsyncCopy {
  uint32_t to;
  const void* from;
  bool exists, grouped;
  size_t group;
};

struct Thread {
  uint3 index{};
  State state = State::kReady;
  Fibre* fibre = nullptr;  // while it has begun and has not ended
  Place place;
  unsigned mask = 0;
  bool vote = false;
  Operands operands{};
  std::vector<AsyncCopy> copies;
  size_t groups = 0;
};

// The block that runs; there is one at a time.
struct Block {
  const std::function<void()>* body = nullptr;
  std::vector<Thread> threads;
  std::vector<WarpOperands> met;  // what the lanes of a warp brought that met last
  int votes = 0;
  Thread* current = nullptr;
  SharedMemory shared;
  std::vector<std::unique_ptr<Fibre>> fibres;
  std::vector<Fibre*> idle;
  bool random = false;

  size_t warps() const { return (threads.size() + kLanes - 1) / kLanes; }
  size_t end_of(size_t warp) const { return std::min(threads.size(), (warp + 1) * kLanes); }
};

Block& block() {
  static Block* const one = new Block;  // outlives what waits at the end of the process
  return *one;
}

Fibre* take_fibre() {
  Block& b = block();
  if (b.idle.empty()) return b.fibres.emplace_back(std::make_unique<Fibre>()).get();
  Fibre* const fibre = b.idle.back();
  b.idle.pop_back();
  return fibre;
}

void run_body() {
  (*block().body)();
  block().current->state = State::kEnded;
}

void run_thread(Thread& thread) {
  Block& b = block();
  b.current = &thread;
  threadIdx = thread.index;
  if (thread.fibre == nullptr) {
    thread.fibre = take_fibre();
    thread.fibre->start(&run_body);
  } else {
    thread.fibre->resume();
  }
  if (thread.state == State::kEnded) {
    b.idle.push_back(thread.fibre);
    thread.fibre = nullptr;
  }
}

void wait_as(State state, const Place& place) {
  Thread& mine = *block().current;
  mine.state = state;
  mine.place = place;
  mine.fibre->suspend();
}

bool is_same(const Place& a, const Place& b) {
  return a.line() == b.line() && a.column() == b.column() && a.file_name() == b.file_name();
}

[[noreturn]] void fault_of(Thread& thread, const char* what) {
  block().current = &thread;
  fault(what);
}

// Frees the lanes that wait for each other and have all come; false if there are none.
bool release_warp(size_t warp) {
  Block& b = block();
  const size_t begin = warp * kLanes, end = b.end_of(warp);
  const unsigned present = end - begin == kLanes ? ~0u : (1u << (end - begin)) - 1;
  for (size_t first = begin; first < end; ++first) {
    Thread& leader = b.threads[first];
    if (leader.state != State::kAtWarp) continue;
    unsigned here = 0, ended = 0;
    for (size_t i = begin; i < end; ++i) {
      const Thread& other = b.threads[i];
      const unsigned bit = 1u << (i - begin);
      if (other.state == State::kEnded) ended |= bit;
      if (other.state == State::kAtWarp && other.mask == leader.mask) here |= bit;
    }
    const unsigned wanted = leader.mask & present;
    if ((wanted & ended) != 0) {
      fault_of(leader, "a collective of a warp waits for a lane that has ended");
    }
    if ((here & wanted) != wanted) continue;
    for (size_t i = begin; i < end; ++i) {
      Thread& other = b.threads[i];
      if ((wanted >> (i - begin) & 1u) == 0) continue;
      if (!is_same(other.place, leader.place)) {
        fault_of(other, "lanes of a warp meet in different collectives");
      }
      b.met[warp].lane[i - begin] = other.operands;
      other.state = State::kReady;
    }
    return true;
  }
  return false;
}

// All threads that have not ended are at the block's barrier.
bool release_block() {
  Block& b = block();
  const Thread* first = nullptr;
  b.votes = 0;
  for (Thread& thread : b.threads) {
    if (thread.state == State::kEnded) continue;
    if (thread.state != State::kAtBlock) {
      fault_of(thread,
               "a lane waits for its warp, of which other lanes are at a barrier of the "
               "block or in another collective");
    }
    if (first != nullptr && !is_same(first->place, thread.place)) {
      fault_of(thread, "threads of a block meet in different barriers");
    }
    first = &thread;
    b.votes += thread.vote ? 1 : 0;
  }
  for (Thread& thread : b.threads) {
    if (thread.state == State::kAtBlock) thread.state = State::kReady;
  }
  return first != nullptr;
}

void shuffle_if_random(std::vector<size_t>& order) {
  if (block().random) std::shuffle(order.begin(), order.end(), dice());
}

std::vector<size_t> numbers(size_t count) {
  std::vector<size_t> order(count);
  std::iota(order.begin(), order.end(), size_t{0});
  return order;
}

void run_warp(size_t warp, std::vector<size_t>& lanes) {
  Block& b = block();
  do {
    shuffle_if_random(lanes);
    for (const size_t lane : lanes) {
      const size_t index = warp * kLanes + lane;
      if (index >= b.threads.size() || b.threads[index].state != State::kReady) continue;
      run_thread(b.threads[index]);
    }
  } while (release_warp(warp));
}

// One warp after another, each as far as it gets: to a barrier of the block.
void run_block(const dim3& size) {
  Block& b = block();
  b.threads.resize(size_t{size.x} * size.y * size.z);
  b.met.resize(b.warps());
  b.shared.clear();
  size_t index = 0;
  for (Thread& thread : b.threads) {
    const auto number = static_cast<unsigned>(index++);
    thread.index = {number % size.x, number / size.x % size.y, number / size.x / size.y};
    thread.state = State::kReady;
    thread.copies.clear();
    thread.groups = 0;
  }
  std::vector<size_t> order = numbers(b.warps()), lanes = numbers(kLanes);
  do {
    shuffle_if_random(order);
    for (const size_t warp : order) run_warp(warp, lanes);
  } while (release_block());
}

}  // namespace

bool suits_device(const dim3& grid, const dim3& block) {
  constexpr unsigned kMaxBlocksAcross = 2147483647, kMaxBlocks = 65535, kMaxDepth = 64;
  const size_t threads = size_t{block.x} * block.y * block.z;
  const bool empty = threads == 0 || size_t{grid.x} * grid.y * grid.z == 0;
  return !empty && threads <= kMaxThreads && block.z <= kMaxDepth && grid.x <= kMaxBlocksAcross &&
         grid.y <= kMaxBlocks && grid.z <= kMaxBlocks;
}

void run_grid(const dim3& grid, const dim3& size, const std::function<void()>& thread,
              bool random) {
  Block& b = block();
  b.body = &thread;
  b.random = random;
  blockDim = size;
  gridDim = grid;
  const size_t blocks = size_t{grid.x} * grid.y * grid.z;
  std::vector<size_t> order = random ? numbers(blocks) : std::vector<size_t>();
  shuffle_if_random(order);
  for (size_t i = 0; i < blocks; ++i) {
    const size_t index = random ? order[i] : i;
    blockIdx = {static_cast<unsigned>(index % grid.x),
                static_cast<unsigned>(index / grid.x % grid.y),
                static_cast<unsigned>(index / grid.x / grid.y)};
    run_block(size);
  }
  b.current = nullptr;
}

void fault(const char* what) {
  const Thread* const at = block().current;
  std::fprintf(stderr, "emulated device: %s", what);
  if (at != nullptr) {
    std::fprintf(stderr, "; block (%u, %u, %u), thread (%u, %u, %u), last collective at %s:%u",
                 blockIdx.x, blockIdx.y, blockIdx.z, at->index.x, at->index.y, at->index.z,
                 at->place.file_name(), at->place.line());
  }
  std::fprintf(stderr, "\n");
  std::abort();
}

int lane_index() {
  const Block& b = block();
  return static_cast<int>(static_cast<size_t>(b.current - b.threads.data()) % kLanes);
}

const WarpOperands& exchange(unsigned mask, const Operands& mine, const Place& place) {
  Block& b = block();
  Thread& thread = *b.current;
  thread.mask = mask;
  thread.operands = mine;
  if ((mask >> lane_index() & 1u) == 0) {
    thread.place = place;
    fault("a lane calls a collective of its warp without being in the mask");
  }
  wait_as(State::kAtWarp, place);
  return b.met[static_cast<size_t>(&thread - b.threads.data()) / kLanes];
}

int block_vote(bool mine, const Place& place) {
  block().current->vote = mine;
  wait_as(State::kAtBlock, place);
  return block().votes;
}

void* shared_object(const void* type, size_t size_bytes, size_t alignment_bytes) {
  return block().shared.object(type, size_bytes, alignment_bytes);
}

uint32_t shared_offset(const void* data) {
  return block().shared.offset(data);
}

uint16_t shared_half(uint32_t row, int index) {
  return block().shared.half(row, index);
}

void start_copy(uint32_t to, const void* from, bool exists) {
  Thread& thread = *block().current;
  block().shared.fill_piece(to, 0xFF);
  if (exists && reinterpret_cast<uintptr_t>(from) % SharedMemory::kPieceBytes != 0) {
    fault("an asynchronous copy from an address that is no multiple of 16");
  }
  thread.copies.push_back({to, from, exists, false, 0});
}

void end_copy_group() {
  Thread& thread = *block().current;
  for (AsyncCopy& copy : thread.copies) {
    if (!copy.grouped) copy.group = thread.groups;
    copy.grouped = true;
  }
  ++thread.groups;
}

void wait_for_copy_groups(size_t left) {
  Thread& thread = *block().current;
  const auto arrived = [&](const AsyncCopy& copy) {
    return copy.grouped && copy.group + left < thread.groups;
  };
  for (const AsyncCopy& copy : thread.copies) {
    if (!arrived(copy)) continue;
    block().shared.fill_piece(copy.to, 0);
    if (copy.exists) block().shared.write_piece(copy.to, copy.from);
  }
  std::erase_if(thread.copies, arrived);
}

}  // namespace emulated_cuda
