#include "onebit/math/kernels/kernel_cuda.h"
#include "onebit/math/ops/rows.h"

namespace onebit::ops::cuda {

using namespace kernels;
using namespace kernels::cuda;

namespace {

constexpr int kThreads = 128;

// One thread block per row, copied in words of 16, 8, 4, 2 or 1 bytes. A row whose index is outside
// x is filled with one bits, which is NaN in every floating-point type.
template <typename Word>
__global__ void gather(const Word* x, const int32_t* indices, int64_t source_rows, int64_t words,
                       Word* y) {
  const int64_t row = blockIdx.x, from = indices[row];
  const bool inside = from >= 0 && from < source_rows;
  for (int64_t i = threadIdx.x; i < words; i += kThreads) {
    Word word;
    if (inside) {
      word = x[from * words + i];
    } else {
      memset(&word, 0xFF, sizeof word);
    }
    y[row * words + i] = word;
  }
}

// Skips indices outside y.
template <typename T>
__global__ void scatter_add(const T* x, const int32_t* indices, int64_t target_rows,
                            int64_t columns, T* y) {
  const int64_t row = blockIdx.x, to = indices[row];
  if (to < 0 || to >= target_rows) return;
  for (int64_t at = int64_t{threadIdx.x} * kEight; at < columns; at += kThreads * kEight) {
    const int64_t count = columns - at;
    Eight values = load_eight(y + to * columns + at, count);
    const Eight added = load_eight(x + row * columns + at, count);
    for (int i = 0; i < kEight; ++i) values.lane[i] += added.lane[i];
    store_eight(values, y + to * columns + at, count);
  }
}

template <typename Word>
bool try_gather(CudaStream& cuda, const GatherRows& a, int64_t row_bytes) {
  const auto fits = [](const void* data) {
    return reinterpret_cast<uintptr_t>(data) % sizeof(Word) == 0;
  };
  constexpr int64_t kWordBytes = sizeof(Word);
  if (row_bytes % kWordBytes != 0 || !fits(a.x.raw()) || !fits(a.y.raw())) return false;
  launch("gather_rows", cuda, static_cast<unsigned>(a.y.extent(0)), kThreads, gather<Word>,
         pointer<Word>(a.x), a.indices.data<int32_t>(), a.x.extent(0), row_bytes / kWordBytes,
         pointer<Word>(a.y));
  return true;
}

}  // namespace

void gather_rows(Context& context, const GatherRows& a) {
  const int64_t row_bytes = a.x.extent(1) * size_bytes_of(a.x.dtype());
  if (a.y.extent(0) * row_bytes == 0) return;
  CudaStream& cuda = CudaStream::of(context);
  const bool done =
      try_gather<uint4>(cuda, a, row_bytes) || try_gather<uint2>(cuda, a, row_bytes) ||
      try_gather<uint32_t>(cuda, a, row_bytes) || try_gather<uint16_t>(cuda, a, row_bytes) ||
      try_gather<uint8_t>(cuda, a, row_bytes);
  ONEBIT_INVARIANT(done);
}

void scatter_add_rows(Context& context, const ScatterAddRows& a) {
  const int64_t rows = a.x.extent(0), columns = a.x.extent(1);
  if (rows * columns == 0) return;
  CudaStream& cuda = CudaStream::of(context);
  with_device_type(a.x.dtype(), [&](auto tag) {
    using T = decltype(tag);
    launch("scatter_add_rows", cuda, static_cast<unsigned>(rows), kThreads, scatter_add<T>,
           pointer<T>(a.x), a.indices.data<int32_t>(), a.y.extent(0), columns, pointer<T>(a.y));
  });
}

namespace {

// One thread block per sequence, eight columns per thread: the order of the sum over rows is fixed.
template <typename T>
__global__ void mean(const T* x, const int32_t* starts, int64_t columns, float* y) {
  const int64_t sequence = blockIdx.x, first = starts[sequence], end = starts[sequence + 1];
  const float part = 1.0f / static_cast<float>(end - first);
  for (int64_t at = int64_t{threadIdx.x} * kEight; at < columns; at += kThreads * kEight) {
    const int64_t count = columns - at;
    Eight sum;
    for (int64_t row = first; row < end; ++row) {
      const Eight values = load_eight(x + row * columns + at, count);
      for (int i = 0; i < kEight; ++i) sum.lane[i] += values.lane[i];
    }
    for (int i = 0; i < kEight; ++i) sum.lane[i] *= part;
    store_eight(sum, y + sequence * columns + at, count);
  }
}

// One thread block per sequence: each of its rows gets an equal part of the gradient of the mean.
template <typename T>
__global__ void mean_backward(const float* grad_y, const int32_t* starts, int64_t columns,
                              T* grad_x) {
  const int64_t sequence = blockIdx.x, first = starts[sequence], end = starts[sequence + 1];
  const float part = 1.0f / static_cast<float>(end - first);
  for (int64_t at = int64_t{threadIdx.x} * kEight; at < columns; at += kThreads * kEight) {
    const int64_t count = columns - at;
    Eight values = load_eight(grad_y + sequence * columns + at, count);
    for (int i = 0; i < kEight; ++i) values.lane[i] *= part;
    for (int64_t row = first; row < end; ++row) {
      store_eight(values, grad_x + row * columns + at, count);
    }
  }
}

}  // namespace

void sequence_mean(Context& context, const SequenceMean& a) {
  const int64_t sequences = a.y.extent(0), columns = a.x.extent(1);
  if (sequences * columns == 0) return;
  CudaStream& cuda = CudaStream::of(context);
  with_device_type(a.x.dtype(), [&](auto tag) {
    using T = decltype(tag);
    launch("sequence_mean", cuda, static_cast<unsigned>(sequences), kThreads, mean<T>,
           pointer<T>(a.x), a.sequence_starts.device.data<int32_t>(), columns, a.y.data<float>());
  });
}

void sequence_mean_backward(Context& context, const SequenceMeanBackward& a) {
  const int64_t sequences = a.grad_y.extent(0), columns = a.grad_x.extent(1);
  if (sequences * columns == 0) return;
  CudaStream& cuda = CudaStream::of(context);
  with_device_type(a.grad_x.dtype(), [&](auto tag) {
    using T = decltype(tag);
    launch("sequence_mean_backward", cuda, static_cast<unsigned>(sequences), kThreads,
           mean_backward<T>, a.grad_y.data<float>(), a.sequence_starts.device.data<int32_t>(),
           columns, pointer<T>(a.grad_x));
  });
}

}  // namespace onebit::ops::cuda
