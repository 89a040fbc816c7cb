// The implementation behind DeviceStream: a stream, cuBLASLt, scratch memory. Only for files that
// are built with CUDA.
//
// The stream is one that the legacy default stream waits for and that waits for it, so that
// memory::copy and memory::fill_zero, which run there, come after the work given before them and
// before the work given after them.
#pragma once

#include <cublasLt.h>
#include <cuda_runtime_api.h>

#include <array>
#include <cstdint>
#include <map>
#include <optional>

#include "onebit/device/context.h"
#include "onebit/device/device_stream.h"
#include "onebit/device/scratch.h"

namespace onebit {

class CudaStream final : public DeviceStream {
 public:
  // The key that distinguishes matrix products; its meaning is the caller's.
  using ProductKey = std::array<int64_t, 12>;
  // The size that NVIDIA recommends for Hopper.
  static constexpr int64_t kWorkspaceBytes = int64_t{32} << 20;
  static constexpr int64_t kStagingBytes = 4096;

  explicit CudaStream(int device_index);
  ~CudaStream() override;
  CudaStream(const CudaStream&) = delete;
  CudaStream& operator=(const CudaStream&) = delete;

  // Returns the stream behind a context and makes its device the calling thread's current one.
  static CudaStream& of(const Context& context);

  void synchronize() override;
  std::shared_ptr<void> record() override;
  void wait_for(const std::shared_ptr<void>& event) override;
  void await(const std::shared_ptr<void>& event) override;
  void copy(void* to, const void* from, int64_t size_bytes) override;

  cudaStream_t stream() const { return stream_; }
  // Created at the first use: a stream that only copies needs neither.
  cublasLtHandle_t cublas();
  void* workspace();
  // The algorithm for each product so far; none if cuBLASLt cannot compute it.
  std::map<ProductKey, std::optional<cublasLtMatmulAlgo_t>>& products() { return products_; }
  // Device memory that later work on this stream may use again.
  Scratch& scratch() { return scratch_; }
  // Page-locked host memory for small results.
  std::byte* staging() const { return staging_; }
  // Copies small pageable host memory to the device in stream order; `from` may be reused on
  // return.
  void upload(void* to, const void* from, int64_t size_bytes);
  // Copies at most kStagingBytes of device memory to the host and waits for them.
  void download(void* to, const void* from, int64_t size_bytes);

 private:
  int device_index_;
  cudaStream_t stream_ = nullptr;
  cublasLtHandle_t cublas_ = nullptr;
  std::byte* staging_ = nullptr;
  Buffer workspace_;
  Scratch scratch_;
  std::map<ProductKey, std::optional<cublasLtMatmulAlgo_t>> products_;
};

}  // namespace onebit
