#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include "onebit/comm/dense_codec.h"
#include "onebit/device/cuda_check.h"
#include "onebit/device/cuda_stream.h"

namespace onebit::comm::cuda {
namespace {

constexpr int kThreads = 256;

template <typename Wire>
__device__ Wire to_wire(float value) {
  if constexpr (std::is_same_v<Wire, __nv_bfloat16>) {
    return __float2bfloat16_rn(value);
  } else if constexpr (std::is_same_v<Wire, __half>) {
    return __float2half_rn(value);
  } else {
    return value;
  }
}

__device__ int64_t element_of_thread() {
  return int64_t{blockIdx.x} * kThreads + threadIdx.x;
}

template <typename From, typename To>
__global__ void convert(const From* from, To* to, int64_t count) {
  const int64_t i = element_of_thread();
  if (i < count) to[i] = to_wire<To>(static_cast<float>(from[i]));
}

template <typename Wire>
__global__ void average(const Wire* received, int64_t elements, int64_t ranks, float share,
                        Wire* result) {
  const int64_t i = element_of_thread();
  if (i >= elements) return;
  float sum = static_cast<float>(received[i]);
  for (int64_t rank = 1; rank < ranks; ++rank) {
    sum += static_cast<float>(received[rank * elements + i]);
  }
  result[i] = to_wire<Wire>(sum * share);
}

template <typename Body>
void with_wire_type(DType wire, const Body& body) {
  switch (wire) {
    case DType::kF32:
      return body(float{});
    case DType::kBF16:
      return body(__nv_bfloat16{});
    default:
      ONEBIT_INVARIANT(wire == DType::kF16);
      return body(__half{});
  }
}

unsigned grid_of(int64_t count) {
  return static_cast<unsigned>((count + kThreads - 1) / kThreads);
}

}  // namespace

void narrow_to_wire(Context& context, ConstView from, View to) {
  const int64_t count = from.elements();
  if (count == 0) return;
  const CudaStream& door = CudaStream::of(context);
  with_wire_type(to.dtype(), [&](auto tag) {
    using Wire = decltype(tag);
    convert<<<grid_of(count), kThreads, 0, door.stream()>>>(static_cast<const float*>(from.raw()),
                                                            static_cast<Wire*>(to.raw()), count);
  });
  check_cuda(cudaGetLastError(), "narrow_to_wire");
}

void widen_from_wire(Context& context, ConstView from, View to) {
  const int64_t count = to.elements();
  if (count == 0) return;
  const CudaStream& door = CudaStream::of(context);
  with_wire_type(from.dtype(), [&](auto tag) {
    using Wire = decltype(tag);
    convert<<<grid_of(count), kThreads, 0, door.stream()>>>(static_cast<const Wire*>(from.raw()),
                                                            static_cast<float*>(to.raw()), count);
  });
  check_cuda(cudaGetLastError(), "widen_from_wire");
}

void average_on_wire(Context& context, ConstView received, View result) {
  const int64_t elements = result.elements(), ranks = received.extent(0);
  if (elements == 0) return;
  const CudaStream& door = CudaStream::of(context);
  with_wire_type(result.dtype(), [&](auto tag) {
    using Wire = decltype(tag);
    average<<<grid_of(elements), kThreads, 0, door.stream()>>>(
        static_cast<const Wire*>(received.raw()), elements, ranks, 1.0f / static_cast<float>(ranks),
        static_cast<Wire*>(result.raw()));
  });
  check_cuda(cudaGetLastError(), "average_on_wire");
}

}  // namespace onebit::comm::cuda
