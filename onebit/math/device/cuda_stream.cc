#include "onebit/math/device/cuda_stream.h"

#include <nvtx3/nvToolsExt.h>

#include <cstdlib>
#include <cstring>
#include <string_view>

#include "onebit/math/device/cuda_check.h"
#include "onebit/math/device/libraries.h"
#include "onebit/math/device/memory.h"
#include "onebit/math/device/profile.h"

namespace onebit {
namespace {

// Machine code for sm_90a runs on compute capability 9.0 alone.
bool runs_sm_90a(int device_index) {
  const char* const warps = std::getenv("ONEBIT_CUDA_WARP_PRODUCTS");
  require(warps == nullptr || std::string_view(warps) == "1",
          "ONEBIT_CUDA_WARP_PRODUCTS is \"{}\": set it to 1 or unset it",
          warps == nullptr ? "" : warps);
  if (!ONEBIT_HAS_SM_90A || warps != nullptr) return false;
  cudaDeviceProp properties{};
  check_cuda(cudaGetDeviceProperties(&properties, device_index), "cudaGetDeviceProperties");
  return properties.major == 9 && properties.minor == 0;
}

}  // namespace

std::unique_ptr<DeviceStream> DeviceStream::open(int index) {
  const int count = memory::cuda_device_count();
  if (count == 0) {
    const std::string why = memory::why_no_cuda_device();
    fail("no CUDA device found: {}; or use --device cpu", why.empty() ? "check nvidia-smi" : why);
  }
  require(index >= 0 && index < count, "no CUDA device {}: {} visible to this process", index,
          count);
  const std::string why = memory::why_cuda_device_is_unusable(index);
  require(why.empty(), "{}; or use --device cpu", why);
  return std::make_unique<CudaStream>(index);
}

CudaStream::CudaStream(int device_index)
    : device_index_(device_index),
      has_warpgroup_products_(runs_sm_90a(device_index)),
      staging_(Device{DeviceType::kCuda, device_index}, kStagingBytes),
      scratch_(Device{DeviceType::kCuda, device_index}) {
  check_cuda(cudaSetDevice(device_index), "cudaSetDevice");
  check_cuda(cudaStreamCreate(&stream_), "cudaStreamCreate");
}

CudaStream::~CudaStream() {
  cudaSetDevice(device_index_);
  cudaStreamSynchronize(stream_);
  if (cublas_ != nullptr) cublasLtDestroy(cublas_);
  cudaStreamDestroy(stream_);
}

CudaStream& CudaStream::of(const Context& context) {
  auto& cuda = static_cast<CudaStream&>(context.cuda());
  check_cuda(cudaSetDevice(cuda.device_index_), "cudaSetDevice");
  return cuda;
}

void CudaStream::synchronize() {
  check_cuda(cudaSetDevice(device_index_), "cudaSetDevice");
  check_cuda(cudaStreamSynchronize(stream_), "cudaStreamSynchronize");
}

std::shared_ptr<void> CudaStream::record() {
  return record_on(stream_);
}

std::shared_ptr<void> CudaStream::record_on(cudaStream_t stream) {
  check_cuda(cudaSetDevice(device_index_), "cudaSetDevice");
  cudaEvent_t event = nullptr;
  check_cuda(cudaEventCreateWithFlags(&event, cudaEventDisableTiming), "cudaEventCreate");
  const std::shared_ptr<void> owner(event, [index = device_index_](void* dead) {
    cudaSetDevice(index);
    cudaEventDestroy(static_cast<cudaEvent_t>(dead));
  });
  check_cuda(cudaEventRecord(event, stream), "cudaEventRecord");
  return owner;
}

void CudaStream::wait_for(const std::shared_ptr<void>& event) {
  delay(stream_, event);
}

void CudaStream::delay(cudaStream_t stream, const std::shared_ptr<void>& event) {
  check_cuda(cudaSetDevice(device_index_), "cudaSetDevice");
  check_cuda(cudaStreamWaitEvent(stream, static_cast<cudaEvent_t>(event.get()), 0),
             "cudaStreamWaitEvent");
}

void CudaStream::wait_for_stream(void* stream) {
  wait_for(record_on(static_cast<cudaStream_t>(stream)));
}

void CudaStream::make_stream_wait(void* stream) {
  delay(static_cast<cudaStream_t>(stream), record());
}

void CudaStream::await(const std::shared_ptr<void>& event) {
  check_cuda(cudaSetDevice(device_index_), "cudaSetDevice");
  check_cuda(cudaEventSynchronize(static_cast<cudaEvent_t>(event.get())), "cudaEventSynchronize");
}

void CudaStream::copy(void* to, const void* from, int64_t size_bytes) {
  if (size_bytes == 0) return;
  check_cuda(cudaSetDevice(device_index_), "cudaSetDevice");
  check_cuda(cudaMemcpyAsync(to, from, static_cast<size_t>(size_bytes), cudaMemcpyDefault, stream_),
             "cudaMemcpyAsync");
}

cublasLtHandle_t CudaStream::cublas() {
  if (cublas_ != nullptr) return cublas_;
  const cublasStatus_t status = cublasLtCreate(&cublas_);
  require(status == CUBLAS_STATUS_SUCCESS, "cublasLtCreate: {}", cublasLtGetStatusString(status));
  return cublas_;
}

void* CudaStream::workspace() {
  if (workspace_.size_bytes() == 0) {
    workspace_ = Buffer(Device{DeviceType::kCuda, device_index_}, kWorkspaceBytes);
  }
  return workspace_.data();
}

// The runtime stages bytes from pageable memory before it returns.
void CudaStream::upload(void* to, const void* from, int64_t size_bytes) {
  if (size_bytes == 0) return;
  check_cuda(
      cudaMemcpyAsync(to, from, static_cast<size_t>(size_bytes), cudaMemcpyHostToDevice, stream_),
      "cudaMemcpyAsync");
}

void CudaStream::download(void* to, const void* from, int64_t size_bytes) {
  ONEBIT_INVARIANT(size_bytes <= kStagingBytes);
  check_cuda(cudaMemcpyAsync(staging_.data(), from, static_cast<size_t>(size_bytes),
                             cudaMemcpyDeviceToHost, stream_),
             "cudaMemcpyAsync");
  synchronize();
  std::memcpy(to, staging_.data(), static_cast<size_t>(size_bytes));
}

int cuda_version() {
  return CUDART_VERSION;
}

void push_profiler_range(const char* name) {
  nvtxRangePushA(name);
}

void pop_profiler_range() {
  nvtxRangePop();
}

}  // namespace onebit
