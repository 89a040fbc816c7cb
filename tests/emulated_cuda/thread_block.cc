#include "tests/emulated_cuda/thread_block.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <numeric>

#include "tests/emulated_cuda/running_block.h"
#include "tests/emulated_cuda/schedule.h"

namespace emulated_cuda {

Block* const the_block = new Block;  // outlives threads that still wait when the process ends

namespace {

Fibre* take_fibre(const Thread& thread) {
  Block& b = block();
  const auto number = static_cast<size_t>(&thread - b.threads.data());
  if (b.watched) return b.fibres[number].get();
  if (b.idle.empty()) return b.fibres.emplace_back(std::make_unique<Fibre>()).get();
  Fibre* const fibre = b.idle.back();
  b.idle.pop_back();
  return fibre;
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

// Returns the next thread to run: of the current warp until all its lanes wait, then of the next
// warp, until all are at a barrier of the block. Null once all threads have ended.
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

// Makes `thread` the current one and returns its stack, to which the caller switches.
Fibre& make_current(Thread& thread) {
  block().current = &thread;
  threadIdx = thread.index;
  if (thread.fibre == nullptr) {
    thread.fibre = take_fibre(thread);
    thread.fibre->reset(&run_bodies);
  }
  return *thread.fibre;
}

// The entry of a stack: runs one thread, and after its end further ones that have not started, if
// it is their turn.
void run_bodies() {
  Block& b = block();
  Fibre& mine = *b.current->fibre;
  mine.arrive();
  while (true) {
    race_detector::acquire(&b.order.begin);
    (*b.body)();
    b.current->products.end_thread();
    race_detector::release(&b.order.end);
    b.current->state = State::kEnded;
    b.current->fibre = nullptr;
    Thread* const next = next_thread();
    if (next != nullptr && next->fibre == nullptr && !b.watched) {
      next->fibre = &mine;
      make_current(*next);
      continue;
    }
    Fibre& to = next == nullptr ? Fibre::host() : make_current(*next);
    if (!b.watched) b.idle.push_back(&mine);
    mine.switch_to(to);
    std::abort();  // not reached: this stack is reset before it is used again
  }
}

// Suspends the running thread and runs the others until it is its turn again.
void wait_as(State state, const Place& place) {
  Thread& mine = *block().current;
  mine.state = state;
  mine.place = place;
  Thread* const next = next_thread();  // not null: a waiting thread is released or is a fault
  if (next == &mine) return;
  Fibre& own = *mine.fibre;
  own.switch_to(make_current(*next));
}

void run_block(const dim3& size, size_t dynamic_bytes) {
  Block& b = block();
  b.threads.resize(size_t{size.x} * size.y * size.z);
  b.met.resize(b.warps());
  b.order.warp.resize(b.warps());
  b.order.part_of_warp.resize(b.warps());
  while (b.watched && b.fibres.size() < b.threads.size()) {
    b.fibres.push_back(std::make_unique<Fibre>());
  }
  b.shared.clear(dynamic_bytes);
  b.copies_late = false;
  for (Thread& thread : b.threads) {
    const auto number = static_cast<unsigned>(&thread - b.threads.data());
    thread.index = {number % size.x, number / size.x % size.y, number / size.x / size.y};
    thread.lane = static_cast<int>(number % kLanes);
    thread.warp = number / kLanes;
    thread.state = State::kReady;
    thread.copies.reset();
    thread.products.reset();
    thread.block_barriers = thread.warp_barriers = 0;
  }
  b.turn.warps = numbers(b.warps());
  b.turn.lanes = numbers(kLanes);
  begin_warps();
  race_detector::release(&b.order.begin);
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
  race_detector::acquire(&b.order.end);
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

void warp_barrier(unsigned mask, const Place& place) {
  Block& b = block();
  Thread& thread = *b.current;
  void* const order = mask == ~0u ? &b.order.warp[thread.warp][thread.warp_barriers++ % 2]
                                  : &b.order.part_of_warp[thread.warp];
  race_detector::release(order);
  exchange(mask, place, 0);
  race_detector::acquire(order);
}

int block_vote(bool mine, const Place& place) {
  Block& b = block();
  Thread& thread = *b.current;
  void* const order = &b.order.block[thread.block_barriers++ % 2];
  race_detector::release(order);
  thread.vote = mine;
  wait_as(State::kAtBlock, place);
  race_detector::acquire(order);
  return b.votes;
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

const uint16_t* shared_piece(uint32_t at) {
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
