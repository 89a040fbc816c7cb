// Collectives and barriers: decides which waiting threads are released, and detects faults.
#include <cstring>

#include "tests/emulated_cuda/running_block.h"

namespace emulated_cuda {
namespace {

bool is_same(const Place& a, const Place& b) {
  if (std::memcmp(&a, &b, sizeof a) == 0) return true;
  return a.line() == b.line() && a.column() == b.column() && a.file_name() == b.file_name();
}

[[noreturn]] void fault_of(Thread& thread, const char* what) {
  block().current = &thread;
  fault(what);
}

// The common case: all lanes of a full warp have reached the same collective with a full mask.
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

}  // namespace

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

void check_warpgroups() {
  Block& b = block();
  for (size_t i = 0; i < b.threads.size(); ++i) {
    Thread& thread = b.threads[i];
    if (thread.products.calls() != b.threads[i / kWarpgroup * kWarpgroup].products.calls()) {
      fault_of(thread, "the warps of a warpgroup have called different products");
    }
  }
}

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

}  // namespace emulated_cuda
