// Memory of CUDA devices. Copies and fills run on the legacy default stream (cuda_stream.h) and are
// waited for, because the streams of transports do not synchronise with it.
#include "onebit/ground/base/error.h"
#include "onebit/math/device/cuda_check.h"
#include "onebit/math/device/memory.h"

namespace onebit::memory {
namespace {

constexpr int kLeastMajor = 8;  // tensor_core_cuda.h needs its instructions

cudaDeviceProp properties_of(int index) {
  cudaDeviceProp properties{};
  check_cuda(cudaGetDeviceProperties(&properties, index), "cudaGetDeviceProperties");
  return properties;
}

}  // namespace

std::byte* cuda_allocate(int device_index, int64_t size_bytes) {
  check_cuda(cudaSetDevice(device_index), "cudaSetDevice");
  void* data = nullptr;
  const cudaError_t status = cudaMalloc(&data, static_cast<size_t>(size_bytes));
  if (status == cudaErrorMemoryAllocation) {
    cudaGetLastError();
    size_t free_bytes = 0, total_bytes = 0;
    check_cuda(cudaMemGetInfo(&free_bytes, &total_bytes), "cudaMemGetInfo");
    throw OutOfMemory(fmt::format("out of memory on cuda:{}: {} bytes requested, {} of {} free; {}",
                                  device_index, size_bytes, free_bytes, total_bytes,
                                  kOutOfMemoryAdvice));
  }
  check_cuda(status, "cudaMalloc");
  return static_cast<std::byte*>(data);
}

void cuda_release(int device_index, std::byte* data) noexcept {
  cudaSetDevice(device_index);
  cudaFree(data);
}

// The default stream belongs to the calling thread's device: it has to be the memory's.
void cuda_fill_zero(int device_index, void* data, int64_t size_bytes) {
  check_cuda(cudaSetDevice(device_index), "cudaSetDevice");
  check_cuda(cudaMemset(data, 0, static_cast<size_t>(size_bytes)), "cudaMemset");
  check_cuda(cudaStreamSynchronize(cudaStreamLegacy), "cudaStreamSynchronize");
}

void cuda_copy(int device_index, void* to, const void* from, int64_t size_bytes) {
  check_cuda(cudaSetDevice(device_index), "cudaSetDevice");
  check_cuda(cudaMemcpy(to, from, static_cast<size_t>(size_bytes), cudaMemcpyDefault),
             "cudaMemcpy");
  check_cuda(cudaStreamSynchronize(cudaStreamLegacy), "cudaStreamSynchronize");
}

void copy_beside(int device_index, void* to, const void* from, int64_t size_bytes) {
  if (size_bytes == 0) return;
  check_cuda(cudaSetDevice(device_index), "cudaSetDevice");
  check_cuda(cudaMemcpyAsync(to, from, static_cast<size_t>(size_bytes), cudaMemcpyDefault,
                             cudaStreamPerThread),
             "cudaMemcpyAsync");
  check_cuda(cudaStreamSynchronize(cudaStreamPerThread), "cudaStreamSynchronize");
}

int cuda_device_count() {
  int count = 0;
  if (cudaGetDeviceCount(&count) == cudaSuccess) return count;
  cudaGetLastError();  // no driver, or no device: not an error of later calls
  return 0;
}

std::string why_no_cuda_device() {
  int count = 0, driver = 0;
  const cudaError_t status = cudaGetDeviceCount(&count);
  if (status == cudaSuccess) return "";
  cudaGetLastError();
  if (status == cudaErrorNoDevice) return "";  // or none that this process may see
  if (cudaDriverGetVersion(&driver) != cudaSuccess || driver == 0) return "";  // there is none
  if (status != cudaErrorInsufficientDriver) {
    return fmt::format("CUDA reports \"{}\"; check nvidia-smi", cudaGetErrorString(status));
  }
  const auto text = [](int version) {
    return fmt::format("{}.{}", version / 1000, version % 1000 / 10);
  };
  return fmt::format(
      "the NVIDIA driver supports CUDA {}, and this onebit was built for CUDA {}: install a newer "
      "driver, or build onebit with an older CUDA toolkit",
      text(driver), text(CUDART_VERSION));
}

std::vector<int> capable_cuda_devices() {
  std::vector<int> capable;
  for (int index = 0; index < cuda_device_count(); ++index) {
    if (properties_of(index).major >= kLeastMajor) capable.push_back(index);
  }
  return capable;
}

std::string why_cuda_device_is_unusable(int index) {
  const cudaDeviceProp properties = properties_of(index);
  const std::string device =
      fmt::format("{} (cuda:{}) has compute capability {}.{}", properties.name, index,
                  properties.major, properties.minor);
  if (properties.major < kLeastMajor) {
    return fmt::format("{}, and onebit's kernels need {}.0 or newer", device, kLeastMajor);
  }
  if (has_device_code(index)) return "";
  return fmt::format(
      "{}, for which this onebit contains no code: build it with -DCMAKE_CUDA_ARCHITECTURES={}{}",
      device, properties.major, properties.minor);
}

bool cuda_device_is_checked(int index) {
  const cudaDeviceProp properties = properties_of(index);
  return properties.major == 9 && properties.minor == 0;  // an H100
}

Device device_of(int device_index, const void* data) {
  cudaPointerAttributes attributes{};
  if (cudaSetDevice(device_index) != cudaSuccess ||
      cudaPointerGetAttributes(&attributes, data) != cudaSuccess) {
    cudaGetLastError();  // no driver
    return {};
  }
  if (attributes.type != cudaMemoryTypeDevice) return {};
  return {DeviceType::kCuda, attributes.device};
}

std::byte* allocate_staging(int device_index, int64_t size_bytes) {
  check_cuda(cudaSetDevice(device_index), "cudaSetDevice");
  void* data = nullptr;
  check_cuda(cudaMallocHost(&data, static_cast<size_t>(size_bytes)), "cudaMallocHost");
  return static_cast<std::byte*>(data);
}

void release_staging(int device_index, std::byte* data) noexcept {
  cudaSetDevice(device_index);
  cudaFreeHost(data);
}

std::string cuda_device_uuid(int index) {
  const cudaDeviceProp properties = properties_of(index);
  std::string text;
  for (size_t i = 0; i < sizeof properties.uuid.bytes; ++i) {
    const bool dash = i == 4 || i == 6 || i == 8 || i == 10;
    text += fmt::format("{}{:02x}", dash ? "-" : "",
                        static_cast<unsigned char>(properties.uuid.bytes[i]));
  }
  return text;
}

std::string describe_cuda_device(int index) {
  const cudaDeviceProp properties = properties_of(index);
  return fmt::format("{}, compute capability {}.{}, {} multiprocessors, {:.0f} GiB",
                     properties.name, properties.major, properties.minor,
                     properties.multiProcessorCount,
                     static_cast<double>(properties.totalGlobalMem) / (1 << 30));
}

}  // namespace onebit::memory
