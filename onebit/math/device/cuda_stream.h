// The implementation of DeviceStream: a stream, cuBLASLt, scratch memory. Only for files built with
// CUDA.
//
// The stream synchronises with the legacy default stream in both directions. So memory::copy and
// memory::fill_zero, which run there, are ordered after all work submitted before them and before
// all work submitted after them.
#pragma once

#include <cublasLt.h>
#include <cuda_runtime_api.h>

#include <array>
#include <cstdint>
#include <map>
#include <optional>

#include "onebit/math/device/buffer.h"
#include "onebit/math/device/context.h"
#include "onebit/math/device/device_stream.h"
#include "onebit/math/device/scratch.h"

namespace onebit {

class CudaStream final : public DeviceStream {
 public:
  // Identifies a matrix product. Callers define its meaning.
  using ProductKey = std::array<int64_t, 12>;
  // The workspace size that NVIDIA recommends for Hopper.
  static constexpr int64_t kWorkspaceBytes = int64_t{32} << 20;
  static constexpr int64_t kStagingBytes = 4096;

  explicit CudaStream(int device_index);
  ~CudaStream() override;
  CudaStream(const CudaStream&) = delete;
  CudaStream& operator=(const CudaStream&) = delete;

  // Returns the stream of a context and makes its device the current one of the calling thread.
  static CudaStream& of(const Context& context);

  void synchronize() override;
  std::shared_ptr<void> record() override;
  void wait_for(const std::shared_ptr<void>& event) override;
  void await(const std::shared_ptr<void>& event) override;
  void wait_for_stream(void* stream) override;
  void make_stream_wait(void* stream) override;
  void copy(void* to, const void* from, int64_t size_bytes) override;
  void allow_tf32(bool allow) override { allows_tf32_ = allow; }
  bool allows_tf32() const { return allows_tf32_; }

  cudaStream_t stream() const { return stream_; }
  // Whether the device and its machine code have the products of warpgroup_cuda.h, and the
  // environment variable ONEBIT_CUDA_WARP_PRODUCTS does not ask to do without them.
  bool has_warpgroup_products() const { return has_warpgroup_products_; }
  // Created at first use: a stream that only copies needs neither.
  cublasLtHandle_t cublas();
  void* workspace();
  // The algorithm chosen for each product so far, or none if cuBLASLt cannot compute it.
  std::map<ProductKey, std::optional<cublasLtMatmulAlgo_t>>& products() { return products_; }
  // Device memory that later work on this stream may reuse.
  Scratch& scratch() { return scratch_; }
  // Copies small pageable host memory to the device in stream order. The caller may reuse `from` on
  // return.
  void upload(void* to, const void* from, int64_t size_bytes);
  // Copies at most kStagingBytes of device memory to the host and waits for the copy.
  void download(void* to, const void* from, int64_t size_bytes);

 private:
  std::shared_ptr<void> record_on(cudaStream_t stream);
  void delay(cudaStream_t stream, const std::shared_ptr<void>& event);

  int device_index_;
  bool has_warpgroup_products_;
  bool allows_tf32_ = false;
  Staging staging_;  // for small results
  cudaStream_t stream_ = nullptr;
  cublasLtHandle_t cublas_ = nullptr;
  Buffer workspace_;
  Scratch scratch_;
  std::map<ProductKey, std::optional<cublasLtMatmulAlgo_t>> products_;
};

}  // namespace onebit
