// Owned memory on one device.
#pragma once

#include <cstddef>
#include <cstdint>

#include "onebit/math/device/device.h"

namespace onebit {

// Uninitialised bytes, aligned to 64 on the CPU and 256 on CUDA devices. Error: out of memory, with
// the requested size.
class Buffer {
 public:
  Buffer() = default;
  Buffer(Device device, int64_t size_bytes);
  ~Buffer();
  Buffer(Buffer&& other) noexcept;
  Buffer& operator=(Buffer&& other) noexcept;
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;

  std::byte* data() const { return data_; }
  int64_t size_bytes() const { return size_bytes_; }
  Device device() const { return device_; }
  void fill_zero();

 private:
  Device device_;
  std::byte* data_ = nullptr;
  int64_t size_bytes_ = 0;
};

}  // namespace onebit
