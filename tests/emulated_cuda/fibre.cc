#include "tests/emulated_cuda/fibre.h"

#include <sys/mman.h>

#include <cstdlib>

#include "tests/emulated_cuda/fibre_switch.h"

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#endif

namespace emulated_cuda {
namespace {

constexpr size_t kStackBytes = size_t{256} << 10;

Fibre* current = nullptr;

// The address sanitizer is told of every change of stacks.
void before_switch([[maybe_unused]] void** save, [[maybe_unused]] const void* bottom,
                   [[maybe_unused]] size_t size_bytes) {
#if defined(__SANITIZE_ADDRESS__)
  __sanitizer_start_switch_fiber(save, bottom, size_bytes);
#endif
}
void after_switch([[maybe_unused]] void* saved, [[maybe_unused]] const void** bottom,
                  [[maybe_unused]] size_t* size_bytes) {
#if defined(__SANITIZE_ADDRESS__)
  __sanitizer_finish_switch_fiber(saved, bottom, size_bytes);
#endif
}

// Stacks begin at different places of a page and of a cache's sets: those of a block's threads are
// used in turn, and at equal places they would push each other out of the caches: 50 steps of a
// model then take 9 % longer (Zen 4).
size_t next_offset() {
  constexpr size_t kLine = 64, kLinesApart = 5, kPlaces = 256;
  static size_t count = 0;
  return count++ % kPlaces * kLinesApart * kLine;
}

}  // namespace

Fibre::Fibre() : offset_bytes_(next_offset()) {
  void* memory = mmap(nullptr, kStackBytes, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) std::abort();
  stack_ = static_cast<char*>(memory);
}

Fibre::~Fibre() {
  munmap(stack_, kStackBytes);
}

void Fibre::start(void (*body)()) {
#if defined(__SANITIZE_ADDRESS__)
  __asan_unpoison_memory_region(stack_, kStackBytes);  // what the body before left
#endif
  body_ = body;
  fake_ = nullptr;
  pointer_ = fresh_stack(stack_, kStackBytes - offset_bytes_, &Fibre::enter);
  run();
}

void Fibre::resume() {
  run();
}

void Fibre::run() {
  current = this;
  before_switch(&outside_fake_, stack_, kStackBytes);
  switch_stack(&outside_, pointer_);
  after_switch(outside_fake_, nullptr, nullptr);
}

void Fibre::suspend() {
  leave(false);
}

void Fibre::leave(bool for_ever) {
  before_switch(for_ever ? nullptr : &fake_, outside_bottom_, outside_bytes_);
  switch_stack(&pointer_, outside_);
  after_switch(fake_, &outside_bottom_, &outside_bytes_);
}

void Fibre::enter() {
  Fibre& self = *current;
  after_switch(nullptr, &self.outside_bottom_, &self.outside_bytes_);
  self.body_();
  self.leave(true);
  std::abort();  // an ended body is not resumed
}

}  // namespace emulated_cuda
