// The door to the CUDA libraries: one stream and its handles. cuda_door.cu, or no_cuda_door.cc.
#pragma once

#include <memory>

namespace onebit {

class CudaDoor {
 public:
  // Error: CUDA is not built in, or there is no device `index`.
  static std::unique_ptr<CudaDoor> open(int index);
  virtual ~CudaDoor() = default;
  virtual void synchronize() = 0;
};

}  // namespace onebit
