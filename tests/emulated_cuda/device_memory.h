// Helpers for the tests of the emulated device: memory, launches, a schedule for one test.
#pragma once

#include <cuda_runtime.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <vector>

#include "tests/emulated_cuda/schedule.h"

namespace emulated_cuda {

// The threads of the tests that do not choose a device use the first one.
inline const cudaError_t main_thread_uses_device_0 = cudaSetDevice(0);

template <typename T>
class DeviceMemory {
 public:
  explicit DeviceMemory(size_t count, int device = 0) : count_(count) {
    EXPECT_EQ(cudaSetDevice(device), cudaSuccess);
    void* data = nullptr;
    EXPECT_EQ(cudaMalloc(&data, count * sizeof(T)), cudaSuccess);
    data_ = static_cast<T*>(data);
  }
  explicit DeviceMemory(const std::vector<T>& values) : DeviceMemory(values.size()) {
    assign(values.data());
  }
  ~DeviceMemory() { cudaFree(data_); }
  DeviceMemory(const DeviceMemory&) = delete;
  DeviceMemory& operator=(const DeviceMemory&) = delete;

  T* data() const { return data_; }
  // cudaMemcpy may return before the copy is complete, and non-blocking streams do not wait for it.
  void assign(const T* values) {
    EXPECT_EQ(cudaMemcpy(data_, values, count_ * sizeof(T), cudaMemcpyHostToDevice), cudaSuccess);
    EXPECT_EQ(cudaStreamSynchronize(nullptr), cudaSuccess);
  }
  std::vector<T> values() const {
    std::vector<T> values(count_);
    EXPECT_EQ(cudaMemcpy(values.data(), data_, count_ * sizeof(T), cudaMemcpyDeviceToHost),
              cudaSuccess);
    return values;
  }

 private:
  size_t count_;
  T* data_ = nullptr;
};

template <typename... Parameters>
cudaError_t start(const dim3& grid, const dim3& block, cudaStream_t stream,
                  void (*kernel)(Parameters...), std::type_identity_t<Parameters>... arguments) {
  const cudaLaunchConfig_t shape{grid, block, 0, stream};
  return cudaLaunchKernelEx(&shape, kernel, arguments...);
}

// Runs the kernel on the legacy stream and waits for it.
template <typename... Parameters>
void run(const dim3& grid, const dim3& block, void (*kernel)(Parameters...),
         std::type_identity_t<Parameters>... arguments) {
  ASSERT_EQ(start(grid, block, nullptr, kernel, arguments...), cudaSuccess);
  ASSERT_EQ(cudaStreamSynchronize(nullptr), cudaSuccess);
}

// Sets the schedule for its lifetime. The destructor restores the environment's.
class InSchedule {
 public:
  explicit InSchedule(const char* text) { set_schedule(text); }
  ~InSchedule() {
    const char* const text = std::getenv("ONEBIT_EMULATED_CUDA_SCHEDULE");
    set_schedule(text == nullptr ? "late" : text);
  }
};

}  // namespace emulated_cuda
