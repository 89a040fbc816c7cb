// The memory operations of a device. CPU: memory_cpu.cc. CUDA: memory_cuda.cc, or no_cuda.cc in
// builds without it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "onebit/ground/base/error.h"
#include "onebit/math/device/device.h"

namespace onebit::memory {

std::byte* allocate(Device device, int64_t size_bytes);
// How memory of a CPU that nobody has touched yet will be used: faults of small pages take longer
// than what is written.
enum class Use {
  kWhole,   // all of it, and soon: all pages are faulted in at once
  kPlaces,  // few places: each costs a small page
};
void prepare(std::byte* data, int64_t size_bytes, Use use) noexcept;
// `size_bytes` must be the size passed to allocate().
void release(Device device, std::byte* data, int64_t size_bytes) noexcept;
void fill_zero(Device device, void* data, int64_t size_bytes);
// Copies between any two devices. It returns when the copy has completed.
void copy(Device to_device, void* to, Device from_device, const void* from, int64_t size_bytes);

// Like copy, with memory of CUDA device `device_index` on either side, but concurrent with all work
// submitted to contexts: for transports, whose callers have synchronised.
void copy_beside(int device_index, void* to, const void* from, int64_t size_bytes);

// Thrown where a CUDA device has too little memory.
class OutOfMemory : public Error {
 public:
  using Error::Error;
};

// Advice for users when memory is short.
inline constexpr const char* kOutOfMemoryAdvice =
    "use a smaller micro-batch (train_micro_batch_size_per_gpu; --batch in prediction) or a "
    "recomputation option";

// The CUDA implementations of the above. These functions, and those below that have an index, make
// that device the thread's current one: on a thread that has none CUDA would take device 0, and
// make a context of some hundred megabytes there for a rank that computes on another one.
std::byte* cuda_allocate(int device_index, int64_t size_bytes);
void cuda_release(int device_index, std::byte* data) noexcept;
// In the order of what contexts have submitted to CUDA device `device_index`. Of a copy between two
// devices that is the one that is read.
void cuda_fill_zero(int device_index, void* data, int64_t size_bytes);
void cuda_copy(int device_index, void* to, const void* from, int64_t size_bytes);
int cuda_device_count();
// Why devices cannot be used although there are a driver and devices ("the NVIDIA driver supports
// CUDA 12.4, ..."). Empty otherwise.
std::string why_no_cuda_device();
// The indices of the devices whose compute capability the kernels are written for, 8.0 or newer.
// Makes no context.
std::vector<int> capable_cuda_devices();
// Why onebit cannot compute on CUDA device `index` ("Tesla T4 has compute capability 7.5, ...").
// Empty if it can.
std::string why_cuda_device_is_unusable(int index);
// Whether onebit's kernels have passed gpu-check on hardware of this device's compute capability.
bool cuda_device_is_checked(int index);
// The UUID of CUDA device `index`, 36 characters, by which processes that see different devices
// know whether they have the same one.
std::string cuda_device_uuid(int index);
// Name, compute capability and memory size of CUDA device `index`, for reports.
std::string describe_cuda_device(int index);

// The device of `data`, for a rank that computes on CUDA device `device_index`. Managed and
// page-locked memory counts as the CPU's.
Device device_of(int device_index, const void* data);

// Page-locked host memory, for copies to and from CUDA device `device_index` at full speed.
std::byte* allocate_staging(int device_index, int64_t size_bytes);
void release_staging(int device_index, std::byte* data) noexcept;

// The number of allocate() calls of this process, for the tests that a step allocates nothing.
int64_t allocation_count();
// The peak of allocated bytes since the last call, for the tests that no phase needs more than was
// announced.
int64_t take_most_held_bytes();

}  // namespace onebit::memory
