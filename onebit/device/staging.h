// Host memory between the host and a device, for copies that neither waits for.
#pragma once

#include <cstdint>
#include <memory>

#include "onebit/device/context.h"

namespace onebit {

// Page-locked for a CUDA device; the CPU's is ordinary memory, and its copies end at once.
class Staging {
 public:
  Staging() = default;
  Staging(Device device, int64_t size_bytes);
  ~Staging();
  Staging(Staging&& other) noexcept;
  Staging& operator=(Staging&& other) noexcept;
  Staging(const Staging&) = delete;
  Staging& operator=(const Staging&) = delete;

  std::byte* data() const { return data_; }
  int64_t size_bytes() const { return size_bytes_; }

  // Give the context a copy between the first `size_bytes` here and memory of its device, which
  // comes in the order of its work. Until wait(), nobody may touch data().
  void upload(const Context&, void* to, int64_t size_bytes);
  void download(const Context&, const void* from, int64_t size_bytes);
  // Returns when the copies of this context given so far have ended.
  void wait();

 private:
  void copy(const Context&, void* to, const void* from, int64_t size_bytes);

  Device device_;
  std::byte* data_ = nullptr;
  int64_t size_bytes_ = 0;
  CudaDoor* door_ = nullptr;      // that copies
  std::shared_ptr<void> copied_;  // the event behind the last copy
};

}  // namespace onebit
