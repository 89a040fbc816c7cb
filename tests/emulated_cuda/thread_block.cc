#include "tests/emulated_cuda/thread_block.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <numeric>
#include <vector>

#include "tests/emulated_cuda/asynchronous.h"
#include "tests/emulated_cuda/fibre.h"
#include "tests/emulated_cuda/schedule.h"
#include "tests/emulated_cuda/shared_memory.h"

namespace emulated_cuda {
namespace {

constexpr size_t kLanes = 32, kWarpgroup = 4 * kLanes;

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
};

// Whose turn it is: warps in an order, each as far as it gets, its lanes in an order.
struct Turn {
  std::vector<size_t> warps, lanes;
  size_t warp = 0, lane = 0;  // the next of them
};

// The block that runs; there is one at a time.
struct Block {
  const std::function<void()>* body = nullptr;
  std::vector<Thread> threads;
  std::vector<WarpOperands> met;  // what the lanes of a warp brought that met last
  int votes = 0;
  Turn turn;
  Thread* current = nullptr;
  SharedMemory shared;
  std::vector<std::unique_ptr<Fibre>> fibres;
  std::vector<Fibre*> idle;
  bool random = false;
  bool copies_late = false;  // a barrier was passed by a thread whose copies products do not see

  size_t warps() const { return (threads.size() + kLanes - 1) / kLanes; }
  size_t end_of(size_t warp) const { return std::min(threads.size(), (warp + 1) * kLanes); }
};

Block* const the_block = new Block;  // outlives what waits at the end of the process
Block& block() {
  return *the_block;
}

Fibre* take_fibre() {
  Block& b = block();
  if (b.idle.empty()) return b.fibres.emplace_back(std::make_unique<Fibre>()).get();
  Fibre* const fibre = b.idle.back();
  b.idle.pop_back();
  return fibre;
}

bool is_same(const Place& a, const Place& b) {
  if (std::memcmp(&a, &b, sizeof a) == 0) return true;
  return a.line() == b.line() && a.column() == b.column() && a.file_name() == b.file_name();
}

[[noreturn]] void fault_of(Thread& thread, const char* what) {
  block().current = &thread;
  fault(what);
}

// The usual case: all lanes of a whole warp have come to the same collective, which is for all.
bool release_whole_warp(size_t warp) {
  Block& b = block();
  const size_t begin = warp * kLanes;
  if (b.end_of(warp) != begin + kLanes) return false;
  Thread* const lanes = &b.threads[begin];
  for (size_t i = 0; i < kLanes; ++i) {
    if (lanes[i].state != State::kAtWarp || lanes[i].mask != ~0u) return false;
    if (!is_same(lanes[i].place, lanes[0].place)) return false;
  }
  for (size_t i = 0; i < kLanes; ++i) {
    b.met[warp].lane[i] = lanes[i].operands;
    lanes[i].state = State::kReady;
  }
  return true;
}

// Frees the lanes that wait for each other and have all come; false if there are none.
bool release_warp(size_t warp) {
  if (release_whole_warp(warp)) return true;
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

// Where the warps of a warpgroup have to have called the same products.
void check_warpgroups() {
  Block& b = block();
  for (size_t i = 0; i < b.threads.size(); ++i) {
    Thread& thread = b.threads[i];
    if (thread.products.calls() != b.threads[i / kWarpgroup * kWarpgroup].products.calls()) {
      fault_of(thread, "the warps of a warpgroup have called different products");
    }
  }
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
    b.copies_late = b.copies_late || thread.products.copies_hidden();
  }
  check_warpgroups();
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

void begin_warp() {
  block().turn.lane = 0;
  shuffle_if_random(block().turn.lanes);
}

void begin_warps() {
  block().turn.warp = 0;
  shuffle_if_random(block().turn.warps);
  begin_warp();
}

// The thread whose turn it is: of the warp that runs, as far as it gets, then of the next one,
// until all are at a barrier of the block. Null once all have ended.
Thread* next_thread() {
  Block& b = block();
  Turn& turn = b.turn;
  while (true) {
    const size_t warp = turn.warps[turn.warp];
    while (turn.lane < kLanes) {
      const size_t index = warp * kLanes + turn.lanes[turn.lane++];
      if (index < b.threads.size() && b.threads[index].state == State::kReady) {
        return &b.threads[index];
      }
    }
    if (release_warp(warp)) {
      begin_warp();
    } else if (++turn.warp < turn.warps.size()) {
      begin_warp();
    } else if (release_block()) {
      begin_warps();
    } else {
      return nullptr;
    }
  }
}

void run_bodies();

// Makes `thread` the one that runs; its stack, which the caller switches to.
Fibre& make_current(Thread& thread) {
  block().current = &thread;
  threadIdx = thread.index;
  if (thread.fibre == nullptr) {
    thread.fibre = take_fibre();
    thread.fibre->reset(&run_bodies);
  }
  return *thread.fibre;
}

// On a stack of its own: one thread, and after its end those that have not begun, if it is their
// turn.
void run_bodies() {
  Block& b = block();
  Fibre& mine = *b.current->fibre;
  mine.arrive();
  while (true) {
    (*b.body)();
    b.current->products.end_thread();
    b.current->state = State::kEnded;
    b.current->fibre = nullptr;
    Thread* const next = next_thread();
    if (next != nullptr && next->fibre == nullptr) {
      next->fibre = &mine;
      make_current(*next);
      continue;
    }
    Fibre& to = next == nullptr ? Fibre::host() : make_current(*next);
    b.idle.push_back(&mine);
    mine.switch_to(to);
    std::abort();  // this stack is not come back to: it begins anew
  }
}

// The running thread waits, and the others run, until it is its turn again.
void wait_as(State state, const Place& place) {
  Thread& mine = *block().current;
  mine.state = state;
  mine.place = place;
  Thread* const next = next_thread();  // there is one: a thread that waits is freed or is a fault
  if (next == &mine) return;
  Fibre& own = *mine.fibre;
  own.switch_to(make_current(*next));
}

void run_block(const dim3& size, size_t dynamic_bytes) {
  Block& b = block();
  b.threads.resize(size_t{size.x} * size.y * size.z);
  b.met.resize(b.warps());
  b.shared.clear(dynamic_bytes);
  b.copies_late = false;
  for (Thread& thread : b.threads) {
    const auto number = static_cast<unsigned>(&thread - b.threads.data());
    thread.index = {number % size.x, number / size.x % size.y, number / size.x / size.y};
    thread.lane = static_cast<int>(number % kLanes);
    thread.warp = number / kLanes;
    thread.state = State::kReady;
    thread.copies = {};
    thread.products = {};
  }
  b.turn.warps = numbers(b.warps());
  b.turn.lanes = numbers(kLanes);
  begin_warps();
  Fibre::host().switch_to(make_current(*next_thread()));
  check_warpgroups();
}

}  // namespace

void run_grid(const dim3& grid, const dim3& size, size_t dynamic_bytes,
              const std::function<void()>& thread, bool random) {
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
    run_block(size, dynamic_bytes);
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
  return block().current->lane;
}

const WarpOperands& exchange(unsigned mask, const Place& place, uint64_t first, uint64_t second,
                             uint64_t third) {
  Block& b = block();
  Thread& thread = *b.current;
  thread.mask = mask;
  const uint64_t operands[] = {first, second, third};
  static_assert(sizeof operands == sizeof thread.operands);
  std::memcpy(&thread.operands, operands, sizeof operands);
  if ((mask >> thread.lane & 1u) == 0) {
    thread.place = place;
    fault("a lane calls a collective of its warp without being in the mask");
  }
  wait_as(State::kAtWarp, place);
  return b.met[thread.warp];
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

std::array<uint16_t, 8> shared_piece(uint32_t at) {
  return block().shared.whole_piece(at);
}

void start_copy(uint32_t to, const void* from, bool exists, size_t size_bytes) {
  block().current->copies.start(block().shared, {to, from, exists, size_bytes});
}

void end_copy_group() {
  block().current->copies.end_group();
}

void wait_for_copy_groups(size_t left) {
  Thread& thread = *block().current;
  if (thread.copies.wait(block().shared, left)) thread.products.hide_copies();
}

void start_product(float* result, size_t count, std::function<void(float*)> compute) {
  Block& b = block();
  b.current->products.start(result, count, std::move(compute));
  if (b.copies_late) fault("copies were made visible to others only after a barrier");
}

void end_product_group() {
  block().current->products.end_group();
}

void wait_for_products() {
  block().current->products.wait();
}

void publish_shared_writes() {
  block().current->products.show_copies();
}

void publish_registers() {
  block().current->products.show_registers();
}

}  // namespace emulated_cuda
