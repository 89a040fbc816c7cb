// Whether the kernels of this build can run on a device.
#pragma once

namespace onebit {

// Whether the program contains code that CUDA device `device_index` and its driver can run. Makes
// this process's context on the device and the device the thread's current one.
bool has_device_code(int device_index);

}  // namespace onebit
