#include "tests/emulated_cuda/race_detector.h"

#include <sys/mman.h>

#include <cstdlib>

// The sanitizer's functions if it is linked (<sanitizer/tsan_interface.h>).
extern "C" {
[[gnu::weak]] void* __tsan_get_current_fiber();
[[gnu::weak]] void* __tsan_create_fiber(unsigned flags);
[[gnu::weak]] void __tsan_destroy_fiber(void* fiber);
[[gnu::weak]] void __tsan_acquire(void* at);
[[gnu::weak]] void __tsan_release(void* at);
[[gnu::weak]] void __tsan_read_range(void* at, long size_bytes);
[[gnu::weak]] void __tsan_write_range(void* at, long size_bytes);
}

namespace emulated_cuda::race_detector {
namespace {

constexpr unsigned kWithoutOrder = 1;

}  // namespace

void* running() {
  return watches() ? __tsan_get_current_fiber() : nullptr;
}

void* add_thread() {
  return watches() ? __tsan_create_fiber(0) : nullptr;
}

void remove_thread(void* thread) {
  if (watches()) __tsan_destroy_fiber(thread);
}

void run(void* thread) {
  if (watches()) __tsan_switch_to_fiber(thread, kWithoutOrder);
}

void release_watched(void* at) {
  __tsan_release(at);
}

void acquire_watched(void* at) {
  __tsan_acquire(at);
}

void read(const void* at, size_t size_bytes) {
  if (watches()) __tsan_read_range(const_cast<void*>(at), static_cast<long>(size_bytes));
}

void wrote(void* at, size_t size_bytes) {
  if (watches()) __tsan_write_range(at, static_cast<long>(size_bytes));
}

void forget_pages(void* begin, size_t size_bytes) {
  if (!watches()) return;
  void* const memory = mmap(begin, size_bytes, PROT_READ | PROT_WRITE,
                            MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) std::abort();
}

}  // namespace emulated_cuda::race_detector
