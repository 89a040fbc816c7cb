#include "onebit/exchange/comm/dense_exchange.h"
#include "onebit/math/kernels/kernel_cuda.h"

namespace onebit::comm::cuda {

using namespace kernels::cuda;

namespace {

constexpr int kThreads = 256;

__device__ int64_t element_of_thread() {
  return int64_t{blockIdx.x} * kThreads + threadIdx.x;
}

template <typename From, typename To>
__global__ void convert(const From* from, To* to, int64_t count) {
  const int64_t i = element_of_thread();
  if (i < count) to[i] = narrow<To>(widen(from[i]));
}

template <typename Wire>
__global__ void average(const Wire* received, int64_t elements, int64_t ranks, float share,
                        Wire* result) {
  const int64_t i = element_of_thread();
  if (i >= elements) return;
  float sum = widen(received[i]);
  for (int64_t rank = 1; rank < ranks; ++rank) {
    sum += widen(received[rank * elements + i]);
  }
  result[i] = narrow<Wire>(sum * share);
}

}  // namespace

void narrow_to_wire(Context& context, ConstView from, View to) {
  const int64_t count = from.elements();
  if (count == 0) return;
  const CudaStream& cuda = CudaStream::of(context);
  with_device_type(to.dtype(), [&](auto tag) {
    using Wire = decltype(tag);
    launch("narrow_to_wire", cuda, blocks_of(count, kThreads), kThreads, convert<float, Wire>,
           pointer<float>(from), pointer<Wire>(to), count);
  });
}

void widen_from_wire(Context& context, ConstView from, View to) {
  const int64_t count = to.elements();
  if (count == 0) return;
  const CudaStream& cuda = CudaStream::of(context);
  with_device_type(from.dtype(), [&](auto tag) {
    using Wire = decltype(tag);
    launch("widen_from_wire", cuda, blocks_of(count, kThreads), kThreads, convert<Wire, float>,
           pointer<Wire>(from), pointer<float>(to), count);
  });
}

void average_on_wire(Context& context, ConstView received, View result) {
  const int64_t elements = result.elements(), ranks = received.extent(0);
  if (elements == 0) return;
  const CudaStream& cuda = CudaStream::of(context);
  with_device_type(result.dtype(), [&](auto tag) {
    using Wire = decltype(tag);
    launch("average_on_wire", cuda, blocks_of(elements, kThreads), kThreads, average<Wire>,
           pointer<Wire>(received), elements, ranks, 1.0f / static_cast<float>(ranks),
           pointer<Wire>(result));
  });
}

}  // namespace onebit::comm::cuda
