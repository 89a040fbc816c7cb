// Stacks of their own for device threads, which take turns on one host thread.
#pragma once

#include <cstddef>

namespace emulated_cuda {

class Fibre {
 public:
  Fibre();
  ~Fibre();
  Fibre(const Fibre&) = delete;
  Fibre& operator=(const Fibre&) = delete;

  // The stack of the host thread that runs, to come back to.
  static Fibre& host();

  // Whoever switches here next calls `entry`, which must not return. What was on the stack is gone.
  void reset(void (*entry)());
  // Called on this stack: leaves it for `to`; returns once another one switches back. Stacks switch
  // to each other directly, so that those left at one place of the source return to it as the
  // processor predicts; by way of a scheduler with a stack of its own a warp takes twice as long.
  void switch_to(Fibre& to);
  // The first thing that an entry does.
  void arrive();

 private:
  enum class Kind { kHost };
  explicit Fibre(Kind) {}

  char* memory_ = nullptr;        // of a stack of our own
  size_t offset_bytes_ = 0;       // unused at the stack's upper end
  void* pointer_ = nullptr;       // of the suspended stack
  const void* bottom_ = nullptr;  // for the address sanitizer
  size_t size_bytes_ = 0;
  void* fake_ = nullptr;
  void* watched_ = nullptr;  // what the thread sanitizer takes for a thread
};

}  // namespace emulated_cuda
