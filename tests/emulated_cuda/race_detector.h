// What the thread sanitizer is told of device threads: to it each is a thread of its own, ordered
// with others by the barriers of a kernel alone, not by the turns in which fibres run. In builds
// without it nothing happens here. The sources of the device are not instrumented; kernels are.
#pragma once

#include <cstddef>

extern "C" [[gnu::weak]] void __tsan_switch_to_fiber(void* fiber, unsigned flags);

namespace emulated_cuda::race_detector {

// Whether the sanitizer is linked.
inline bool watches() {
  return __tsan_switch_to_fiber != nullptr;
}
// Null if it is not.
void* running();
void* add_thread();
void remove_thread(void* thread);
// Called right before the stack is changed. No order follows from it.
void run(void* thread);

// What was done before a release of `at` comes before what is done after a later acquire of it.
void release_watched(void* at);
void acquire_watched(void* at);
inline void release(void* at) {
  if (watches()) release_watched(at);
}
inline void acquire(void* at) {
  if (watches()) acquire_watched(at);
}

// By the running thread, where the device reads or writes memory in its place.
void read(const void* at, size_t size_bytes);
void wrote(void* at, size_t size_bytes);

// Fresh memory in the place of pages: who used them before has nothing to do with it.
void forget_pages(void* begin, size_t size_bytes);

}  // namespace emulated_cuda::race_detector
