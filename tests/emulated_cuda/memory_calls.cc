// The runtime's functions for devices, memory and copies.
#include <cuda_runtime.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <new>
#include <vector>

#include "tests/emulated_cuda/requested_failure.h"
#include "tests/emulated_cuda/thread_block.h"
#include "tests/emulated_cuda/work.h"

namespace emulated_cuda {
namespace {

thread_local cudaError_t last_error = cudaSuccess;

cudaError_t allocate(MemoryKind kind, void** data, size_t size_bytes) {
  const auto lock = Machine::lock();
  Machine& machine = Machine::one();
  *data = nullptr;
  const int device = current_device();
  const bool fits = kind == MemoryKind::kPinned
                        ? size_bytes <= kDeviceBytes
                        : size_bytes <= kDeviceBytes - machine.regions().device_bytes(device);
  if (!fits) return remember(cudaErrorMemoryAllocation);
  if (size_bytes == 0) return cudaSuccess;
  try {
    *data = machine.regions().add(kind, device, size_bytes);
  } catch (const std::bad_alloc&) {
    return remember(cudaErrorMemoryAllocation);
  }
  return cudaSuccess;
}

// Frees memory after waiting for the device, like the real functions.
cudaError_t release(MemoryKind kind, void* data) {
  current_device();
  if (data == nullptr) return cudaSuccess;
  auto lock = Machine::lock();
  Machine& machine = Machine::one();
  const Region* const region = machine.regions().of(data);
  if (region == nullptr || region->begin != data || region->kind != kind) {
    return remember(cudaErrorInvalidValue);
  }
  machine.complete_all(lock, region->device);
  machine.regions().remove(*region);
  return cudaSuccess;
}

bool holds(const Region* region, const void* data, size_t size_bytes) {
  return static_cast<const char*>(data) + size_bytes <= region->begin + region->size_bytes;
}

// Copies from pageable memory immediately, like the runtime, because the caller may then reuse it.
cudaError_t copy(Machine::Lock& lock, void* to, const void* from, size_t size_bytes,
                 cudaStream_t stream) {
  current_device();
  Machine& machine = Machine::one();
  if (!machine.is_stream(stream)) return remember(cudaErrorInvalidResourceHandle);
  const Region* const target = machine.regions().of(to);
  const Region* const source = machine.regions().of(from);
  if ((target != nullptr && !holds(target, to, size_bytes)) ||
      (source != nullptr && !holds(source, from, size_bytes))) {
    return remember(cudaErrorInvalidValue);
  }
  if (source == nullptr) {
    const auto* const bytes = static_cast<const char*>(from);
    auto kept = std::make_shared<std::vector<char>>(bytes, bytes + size_bytes);
    const WorkRef work = machine.append(stream, -1, [=] {
      std::memcpy(to, kept->data(), size_bytes);
      return true;
    });
    if (target == nullptr) machine.complete(lock, work);
    return cudaSuccess;
  }
  const WorkRef work = machine.append(stream, -1, [=] {
    std::memmove(to, from, size_bytes);
    return true;
  });
  if (target == nullptr) machine.complete(lock, work);
  return cudaSuccess;
}

}  // namespace

cudaError_t remember(cudaError_t error) {
  if (error != cudaSuccess) last_error = error;
  return error;
}

}  // namespace emulated_cuda

using namespace emulated_cuda;

cudaError_t cudaGetDeviceCount(int* count) {
  if (is_to_fail("cudaGetDeviceCount")) return remember(cudaErrorUnknown);
  int driver = 0;
  cudaDriverGetVersion(&driver);
  if (driver < CUDART_VERSION) return remember(cudaErrorInsufficientDriver);
  *count = Machine::one().devices();
  if (*count == 0) return remember(cudaErrorNoDevice);
  return cudaSuccess;
}

// Returns ONEBIT_EMULATED_CUDA_DRIVER, by default the runtime's version.
cudaError_t cudaDriverGetVersion(int* version) {
  const char* const text = std::getenv("ONEBIT_EMULATED_CUDA_DRIVER");
  *version = text == nullptr ? CUDART_VERSION : std::atoi(text);
  return cudaSuccess;
}

cudaError_t cudaSetDevice(int device) {
  if (is_to_fail("cudaSetDevice")) return remember(cudaErrorUnknown);
  if (device < 0 || device >= Machine::one().devices()) return remember(cudaErrorInvalidDevice);
  set_current_device(device);
  return cudaSuccess;
}

cudaError_t cudaGetDeviceProperties(cudaDeviceProp* properties, int device) {
  if (device < 0 || device >= Machine::one().devices()) return remember(cudaErrorInvalidDevice);
  *properties = {};
  std::snprintf(properties->name, sizeof properties->name, "emulated on the CPU (no GPU)");
  properties->uuid.bytes[0] = static_cast<char>(device + 1);
  properties->totalGlobalMem = kDeviceBytes;
  properties->sharedMemPerBlock = kSharedBytes;
  properties->major = capability(device) / 10;
  properties->minor = capability(device) % 10;
  properties->multiProcessorCount = 1;
  return cudaSuccess;
}

cudaError_t cudaMalloc(void** data, size_t size_bytes) {
  if (is_to_fail("cudaMalloc")) return remember(cudaErrorMemoryAllocation);
  return allocate(MemoryKind::kDevice, data, size_bytes);
}

cudaError_t cudaMallocHost(void** data, size_t size_bytes) {
  if (is_to_fail("cudaMallocHost")) return remember(cudaErrorMemoryAllocation);
  return allocate(MemoryKind::kPinned, data, size_bytes);
}

cudaError_t cudaFree(void* data) {
  return release(MemoryKind::kDevice, data);
}

cudaError_t cudaFreeHost(void* data) {
  return release(MemoryKind::kPinned, data);
}

cudaError_t cudaMemGetInfo(size_t* free_bytes, size_t* total_bytes) {
  if (is_to_fail("cudaMemGetInfo")) return remember(cudaErrorUnknown);
  const auto lock = Machine::lock();
  *total_bytes = kDeviceBytes;
  *free_bytes = kDeviceBytes - Machine::one().regions().device_bytes(current_device());
  return cudaSuccess;
}

cudaError_t cudaPointerGetAttributes(cudaPointerAttributes* attributes, const void* data) {
  current_device();
  const auto lock = Machine::lock();
  const Region* const region = Machine::one().regions().of(data);
  const bool inside = region != nullptr && holds(region, data, 1);
  *attributes = {cudaMemoryTypeUnregistered, -2};
  if (!inside) return cudaSuccess;
  const bool on_device = region->kind == MemoryKind::kDevice;
  *attributes = {on_device ? cudaMemoryTypeDevice : cudaMemoryTypeHost, region->device};
  return cudaSuccess;
}

cudaError_t cudaMemsetAsync(void* data, int value, size_t size_bytes, cudaStream_t stream) {
  if (is_to_fail("cudaMemsetAsync")) return remember(cudaErrorUnknown);
  const auto lock = Machine::lock();
  Machine& machine = Machine::one();
  const Region* const region = machine.regions().of(data);
  if (!machine.is_stream(stream)) return remember(cudaErrorInvalidResourceHandle);
  if (region == nullptr || !holds(region, data, size_bytes)) {
    return remember(cudaErrorInvalidValue);
  }
  machine.append(stream, -1, [=] {
    std::memset(data, value, size_bytes);
    return true;
  });
  return cudaSuccess;
}

cudaError_t cudaMemset(void* data, int value, size_t size_bytes) {
  if (is_to_fail("cudaMemset")) return remember(cudaErrorUnknown);
  return cudaMemsetAsync(data, value, size_bytes, cudaStreamLegacy);
}

cudaError_t cudaMemcpyAsync(void* to, const void* from, size_t size_bytes, cudaMemcpyKind,
                            cudaStream_t stream) {
  if (is_to_fail("cudaMemcpyAsync")) return remember(cudaErrorUnknown);
  auto lock = Machine::lock();
  return copy(lock, to, from, size_bytes, stream);
}

cudaError_t cudaMemcpy(void* to, const void* from, size_t size_bytes, cudaMemcpyKind) {
  if (is_to_fail("cudaMemcpy")) return remember(cudaErrorUnknown);
  auto lock = Machine::lock();
  const cudaError_t status = copy(lock, to, from, size_bytes, cudaStreamLegacy);
  const Region* const target = Machine::one().regions().of(to);
  const bool waits = target == nullptr || target->kind == MemoryKind::kPinned;
  if (status == cudaSuccess && waits) {
    Machine::one().complete(lock, Machine::one().append(cudaStreamLegacy, -1, [] { return true; }));
  }
  return status;
}

cudaError_t cudaGetLastError() {
  return std::exchange(last_error, cudaSuccess);
}

const char* cudaGetErrorName(cudaError_t error) {
  switch (error) {
    case cudaSuccess:
      return "cudaSuccess";
    case cudaErrorInvalidValue:
      return "cudaErrorInvalidValue";
    case cudaErrorMemoryAllocation:
      return "cudaErrorMemoryAllocation";
    case cudaErrorInvalidConfiguration:
      return "cudaErrorInvalidConfiguration";
    case cudaErrorInsufficientDriver:
      return "cudaErrorInsufficientDriver";
    case cudaErrorNoDevice:
      return "cudaErrorNoDevice";
    case cudaErrorInvalidDevice:
      return "cudaErrorInvalidDevice";
    case cudaErrorInvalidResourceHandle:
      return "cudaErrorInvalidResourceHandle";
    case cudaErrorNotReady:
      return "cudaErrorNotReady";
    case cudaErrorIllegalAddress:
      return "cudaErrorIllegalAddress";
    case cudaErrorNoKernelImageForDevice:
      return "cudaErrorNoKernelImageForDevice";
    default:
      break;
  }
  return "cudaErrorUnknown";
}

const char* cudaGetErrorString(cudaError_t error) {
  return error == cudaSuccess ? "no error" : "an error of the emulated device";
}
