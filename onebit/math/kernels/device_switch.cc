#include "onebit/math/kernels/device_switch.h"

#include "onebit/ground/base/error.h"

namespace onebit::kernels {

void fail_without_cuda(std::string_view operation) {
  fail("{}: this onebit was built without CUDA: use --device cpu, or build with -DONEBIT_CUDA=ON",
       operation);
}

}  // namespace onebit::kernels
