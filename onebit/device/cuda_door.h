// The door to the CUDA libraries: one stream and its handles. cuda_stream.cc, or no_cuda_door.cc.
#pragma once

#include <cstdint>
#include <memory>

namespace onebit {

class CudaDoor {
 public:
  // Error: CUDA is not built in, or there is no device `index`.
  static std::unique_ptr<CudaDoor> open(int index);
  virtual ~CudaDoor() = default;
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
