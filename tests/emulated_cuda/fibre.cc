#include "tests/emulated_cuda/fibre.h"

#include <sys/mman.h>

#include <cstdlib>

#include "tests/emulated_cuda/fibre_switch.h"
#include "tests/emulated_cuda/race_detector.h"

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#endif

namespace emulated_cuda {
namespace {

constexpr size_t kStackBytes = size_t{256} << 10;

[[maybe_unused]] Fibre* left = nullptr;  // the stack before the last switch

// Stacks start at different offsets, and so in different sets of the caches: the stacks of a block
// are used in turn and would evict each other with equal offsets. 50 steps of a model would then
// take 9 % longer (Zen 4).
size_t next_offset() {
  constexpr size_t kLine = 64, kLinesApart = 5, kPlaces = 256;
  static size_t count = 0;
  return count++ % kPlaces * kLinesApart * kLine;
}

}  // namespace

Fibre::Fibre() : offset_bytes_(next_offset()), size_bytes_(kStackBytes) {
  void* memory = mmap(nullptr, kStackBytes, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) std::abort();
  memory_ = static_cast<char*>(memory);
  bottom_ = memory;
  watched_ = race_detector::add_thread();
}

Fibre::~Fibre() {
  if (memory_ == nullptr) return;
  race_detector::remove_thread(watched_);
  munmap(memory_, kStackBytes);
}

Fibre& Fibre::host() {
  static Fibre one(Kind::kHost);
  return one;
}

void Fibre::reset(void (*entry)()) {
  const size_t end = kStackBytes - offset_bytes_;
#if defined(__SANITIZE_ADDRESS__)
  // The frames that the previous entry left suspended are poisoned. The whole stack would take
  // longer than most bodies.
  if (pointer_ != nullptr) {
    const char* const lowest = static_cast<const char*>(pointer_);
    __asan_unpoison_memory_region(lowest, static_cast<size_t>(memory_ + end - lowest));
  }
#endif
  pointer_ = fresh_stack(memory_, end, entry);
}

// Announces every switch to the address sanitizer. Its fake stack is reused for the next body,
// because creating one takes longer than most bodies.
void Fibre::switch_to(Fibre& to) {
#if defined(__SANITIZE_ADDRESS__)
  left = this;
  __sanitizer_start_switch_fiber(&fake_, to.bottom_, to.size_bytes_);
#endif
  if (race_detector::watches()) {
    if (memory_ == nullptr) watched_ = race_detector::running();
    race_detector::run(to.watched_);
  }
  switch_stack(&pointer_, to.pointer_);
  arrive();
}

void Fibre::arrive() {
#if defined(__SANITIZE_ADDRESS__)
  // This also sets the bounds of the host's stack when it is left for the first time.
  __sanitizer_finish_switch_fiber(fake_, &left->bottom_, &left->size_bytes_);
#endif
}

}  // namespace emulated_cuda
