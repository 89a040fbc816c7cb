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

  // Runs `body` up to its first suspension, or to its end.
  void start(void (*body)());
  // Goes on behind the last suspension.
  void resume();
  // Called on the fibre: back to who started or resumed it.
  void suspend();

 private:
  static void enter();
  void leave(bool for_ever);
  void run();

  size_t offset_bytes_;  // unused at the stack's upper end
  char* stack_ = nullptr;
  void* pointer_ = nullptr;  // of the suspended stack
  void* outside_ = nullptr;
  void (*body_)() = nullptr;
  // For the address sanitizer.
  void* fake_ = nullptr;
  void* outside_fake_ = nullptr;
  const void* outside_bottom_ = nullptr;
  size_t outside_bytes_ = 0;
};

}  // namespace emulated_cuda
