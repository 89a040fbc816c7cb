// Device threads have their own stacks and take turns on one host thread.
#pragma once

#include <cstddef>

namespace emulated_cuda {

class Fibre {
 public:
  Fibre();
  ~Fibre();
  Fibre(const Fibre&) = delete;
  Fibre& operator=(const Fibre&) = delete;

  // The stack of the running host thread.
  static Fibre& host();

  // The next switch to this stack calls `entry`, which must not return. Discards its content.
  void reset(void (*entry)());
  // Called on this stack: switches to `to`, and returns once another stack switches back. Stacks
  // switch to each other directly, so that the processor predicts the return of stacks that were
  // left at the same place. Via a scheduler with its own stack, a warp takes twice as long.
  void switch_to(Fibre& to);
  // To be called at the start of every entry.
  void arrive();

 private:
  enum class Kind { kHost };
  explicit Fibre(Kind) {}

  char* memory_ = nullptr;        // of an allocated stack, null for the host's
  size_t offset_bytes_ = 0;       // unused at the stack's upper end
  void* pointer_ = nullptr;       // of the suspended stack
  const void* bottom_ = nullptr;  // for the address sanitizer
  size_t size_bytes_ = 0;
  void* fake_ = nullptr;
  void* watched_ = nullptr;  // the thread sanitizer's handle of this fibre
};

}  // namespace emulated_cuda
