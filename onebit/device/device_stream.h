// A CUDA stream as code without CUDA headers sees it: cuda_stream.cc, or no_cuda_stream.cc.
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
  // An event after all work given so far, and making work given from now on wait for one.
  virtual std::shared_ptr<void> record() = 0;
  virtual void wait_for(const std::shared_ptr<void>& event) = 0;
  // Returns when the work before the event has been done.
  virtual void await(const std::shared_ptr<void>& event) = 0;
  // Copies in the order of the work given, to or from memory of the device; with page-locked memory
  // on the other side it returns at once.
  virtual void copy(void* to, const void* from, int64_t size_bytes) = 0;
};

}  // namespace onebit
