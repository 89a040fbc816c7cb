// The interface of a CUDA stream without CUDA headers: cuda_stream.cc, or no_cuda.cc.
#pragma once

#include <cstdint>
#include <memory>

namespace onebit {

class DeviceStream {
 public:
  // Error: CUDA is not built in, or there is no device `index`.
  static std::unique_ptr<DeviceStream> open(int index);
  virtual ~DeviceStream() = default;
  virtual void synchronize() = 0;
  // An event after all work submitted so far. wait_for() delays later work until an event.
  virtual std::shared_ptr<void> record() = 0;
  virtual void wait_for(const std::shared_ptr<void>& event) = 0;
  // Returns when the work before the event has completed.
  virtual void await(const std::shared_ptr<void>& event) = 0;
  // Another library's stream on this device, a cudaStream_t: later work here waits for what was
  // submitted to it, and the reverse.
  virtual void wait_for_stream(void* stream) = 0;
  virtual void make_stream_wait(void* stream) = 0;
  // Copies to or from memory of the device, in stream order. It returns at once if the memory on
  // the other side is page-locked.
  virtual void copy(void* to, const void* from, int64_t size_bytes) = 0;
  // Whether later matrix products of f32 may round their operands to tf32: 11 significant bits with
  // the range of f32, which tensor cores multiply. At first they may not.
  virtual void allow_tf32(bool allow) = 0;
};

}  // namespace onebit
