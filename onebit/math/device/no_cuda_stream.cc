#include "onebit/ground/base/error.h"
#include "onebit/math/device/device_stream.h"
#include "onebit/math/device/libraries.h"

namespace onebit {

std::unique_ptr<DeviceStream> DeviceStream::open(int) {
  fail("this onebit was built without CUDA: use --device cpu, or build with -DONEBIT_CUDA=ON");
}

int cuda_version() {
  return 0;
}

}  // namespace onebit
