// The header that nvcc includes before a .cu file: the host's interface, CUDA C++, and launches.
#pragma once

#include <cuda_runtime_api.h>

#include <cstring>
#include <functional>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "tests/emulated_cuda/device_language.h"

struct cudaLaunchConfig_t {
  dim3 gridDim, blockDim;
  size_t dynamicSmemBytes;
  cudaStream_t stream;
};

namespace emulated_cuda {

inline constexpr size_t kMaxParameterBytes = 4096;

// The pointers among a kernel's parameters, and all words of parameters that are structs, which may
// be pointers.
struct ParameterWords {
  std::vector<const void*> pointers, words;

  template <typename T>
  void add(const T& parameter) {
    if constexpr (std::is_pointer_v<T>) {
      pointers.push_back(parameter);
    } else {
      // Padding keeps old stack content, for example half of an address, which looks like a
      // pointer.
      T cleared = parameter;
      __builtin_clear_padding(&cleared);  // in GCC 11 and later
      for (size_t at = 0; at + sizeof(void*) <= sizeof(T); at += sizeof(void*)) {
        const void* word = nullptr;
        std::memcpy(&word, reinterpret_cast<const char*>(&cleared) + at, sizeof word);
        words.push_back(word);
      }
    }
  }
};

cudaError_t launch(const cudaLaunchConfig_t& shape, const void* kernel,
                   const ParameterWords& parameters, std::function<void()> thread);

}  // namespace emulated_cuda

template <typename... Parameters>
cudaError_t cudaFuncSetAttribute(void (*kernel)(Parameters...), cudaFuncAttribute attribute,
                                 int value) {
  return cudaFuncSetAttribute(reinterpret_cast<const void*>(kernel), attribute, value);
}

template <typename... Parameters>
cudaError_t cudaFuncGetAttributes(cudaFuncAttributes* attributes, void (*kernel)(Parameters...)) {
  return cudaFuncGetAttributes(attributes, reinterpret_cast<const void*>(kernel));
}

template <typename... Parameters, typename... Arguments>
cudaError_t cudaLaunchKernelEx(const cudaLaunchConfig_t* shape, void (*kernel)(Parameters...),
                               Arguments&&... arguments) {
  static_assert((std::is_trivially_copyable_v<Parameters> && ...));
  static_assert((sizeof(Parameters) + ... + 0) <= emulated_cuda::kMaxParameterBytes);
  const std::tuple<Parameters...> given(std::forward<Arguments>(arguments)...);
  emulated_cuda::ParameterWords words;
  std::apply([&](const auto&... parameter) { (words.add(parameter), ...); }, given);
  return emulated_cuda::launch(*shape, reinterpret_cast<const void*>(kernel), words,
                               [kernel, given] { std::apply(kernel, given); });
}
