// Owned memory on one device.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "onebit/math/device/context.h"
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

// Host memory for asynchronous copies to and from a device.

// Page-locked memory for a CUDA device, ordinary memory for the CPU, where copies complete at once.
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

  // Submits a copy between the first `size_bytes` of this buffer and memory of the context's
  // device, in the order of its work. data() must not be accessed until wait().
  void upload(const Context&, void* to, int64_t size_bytes);
  void download(const Context&, const void* from, int64_t size_bytes);
  // Returns when all copies submitted so far have completed.
  void wait();

 private:
  void copy(const Context&, void* to, const void* from, int64_t size_bytes);

  Device device_;
  std::byte* data_ = nullptr;
  int64_t size_bytes_ = 0;
  DeviceStream* stream_ = nullptr;  // the stream of the copies
  std::shared_ptr<void> copied_;    // the event after the last copy
};

}  // namespace onebit
