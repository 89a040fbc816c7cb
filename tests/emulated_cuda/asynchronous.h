// Asynchronous operations that a device thread has started and not waited for: copies to shared
// memory, and products of its warpgroup.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

#include "tests/emulated_cuda/shared_memory.h"

namespace emulated_cuda {

struct AsyncCopy {
  uint32_t to;
  const void* from;
  bool exists;
  size_t size_bytes;
};

class AsyncCopies {
 public:
  // The race detector would report a race if device threads allocated memory for their lists.
  AsyncCopies() { started_.reserve(kUsual); }
  // Back to the state of a new thread.
  void reset();
  // The destination holds NaN from now on. Fault: an address that is no multiple of the size.
  void start(SharedMemory& shared, const AsyncCopy& copy);
  void end_group();
  // Completes the copies of all groups except the last `left`. Returns whether there were any.
  bool wait(SharedMemory& shared, size_t left);

 private:
  static constexpr size_t kNoGroup = SIZE_MAX, kUsual = 64;
  struct Started {
    AsyncCopy copy;
    size_t group;
  };

  std::vector<Started> started_;
  size_t groups_ = 0;
};

// A product is computed when the thread waits for it. Its registers hold NaN until then.
class AsyncProducts {
 public:
  AsyncProducts() { started_.reserve(kUsual); }
  // Back to the state of a new thread.
  void reset();
  // `compute` changes the `count` values of `result`. Several products may have the same `result`,
  // and each adds to the result of the one before. Fault: copies that have arrived, or registers,
  // are still hidden from products.
  void start(float* result, size_t count, std::function<void(float*)> compute);
  void end_group();
  // Waits for all groups. Registers are hidden from then on, since the thread may change them.
  void wait();
  void hide_copies() { copies_hidden_ = true; }
  void show_copies() { copies_hidden_ = false; }
  bool copies_hidden() const { return copies_hidden_; }
  // Counts of starts, ends of groups and waits, which must agree among the warps of a warpgroup.
  struct Calls {
    size_t starts = 0, groups = 0, waits = 0;
    bool operator==(const Calls&) const = default;
  };
  const Calls& calls() const { return calls_; }
  // Writes to registers between this and the start of a product are not detected.
  void show_registers() { registers_hidden_ = false; }
  // Fault: some products were not waited for.
  void end_thread() const;

 private:
  static constexpr size_t kUsual = 64;
  struct Started {
    float* result;
    std::vector<float> values;  // of `result` at the start, none if another product is pending
    std::function<void(float*)> compute;
    bool grouped;
  };

  std::vector<Started> started_;
  Calls calls_;
  bool copies_hidden_ = false, registers_hidden_ = true;
};

}  // namespace emulated_cuda
