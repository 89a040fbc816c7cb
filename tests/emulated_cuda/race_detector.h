// Annotations of device threads for the thread sanitizer. It sees each as a separate thread,
// ordered with others only by the barriers of a kernel, not by the turns in which fibres run. In
// builds without the sanitizer these functions do nothing. Only kernels are instrumented, not the
// sources of the device.
#pragma once

#include <cstddef>

extern "C" [[gnu::weak]] void __tsan_switch_to_fiber(void* fiber, unsigned flags);

namespace emulated_cuda::race_detector {

// Whether the sanitizer is linked.
inline bool watches() {
  return __tsan_switch_to_fiber != nullptr;
}
// The handle of the running thread, null without the sanitizer.
void* running();
void* add_thread();
void remove_thread(void* thread);
// Called immediately before a switch of stacks. Does not order memory accesses.
void run(void* thread);

// Accesses before a release of `at` are ordered before accesses after a later acquire of it.
void release_watched(void* at);
void acquire_watched(void* at);
inline void release(void* at) {
  if (watches()) release_watched(at);
}
inline void acquire(void* at) {
  if (watches()) acquire_watched(at);
}

// Record accesses of the running thread that the device performs on its behalf.
void read(const void* at, size_t size_bytes);
void wrote(void* at, size_t size_bytes);

// Forgets earlier accesses to pages that are used as new memory.
void forget_pages(void* begin, size_t size_bytes);

}  // namespace emulated_cuda::race_detector
