#include <cmath>

#include "onebit/math/device/cuda_check.h"
#include "onebit/math/kernels/kernel_cuda.h"
#include "onebit/math/ops/elementwise.h"

namespace onebit::ops::cuda {

using namespace kernels;
using namespace kernels::cuda;

namespace {

constexpr int kThreads = 256;

// to = function(from, to), eight elements per thread.
template <typename From, typename To, class Function>
__global__ void transform(const From* from, To* to, int64_t count, Function function) {
  const int64_t at = (int64_t{blockIdx.x} * kThreads + threadIdx.x) * kEight;
  if (at >= count) return;
  const Eight read = load_eight(from + at, count - at);
  Eight old;
  if constexpr (Function::kReadsTo) old = load_eight(to + at, count - at);
  for (int i = 0; i < kEight; ++i) old.lane[i] = function(read.lane[i], old.lane[i]);
  store_eight(old, to + at, count - at);
}

struct Same {
  static constexpr bool kReadsTo = false;
  __device__ float operator()(float from, float) const { return from; }
};
struct Added {
  static constexpr bool kReadsTo = true;
  __device__ float operator()(float from, float to) const { return from + to; }
};

// One thread per eight elements.
template <typename T>
__global__ void fill_with(T* to, int64_t count, float value) {
  const int64_t at = (int64_t{blockIdx.x} * kThreads + threadIdx.x) * kEight;
  if (at >= count) return;
  Eight values;
  for (int i = 0; i < kEight; ++i) values.lane[i] = value;
  store_eight(values, to + at, count - at);
}

// A kernel gets this list by value, so that nothing has to be copied to the device first.
struct RangeList {
  static constexpr int kMost = 128;
  Range range[kMost];
};
constexpr int64_t kLongRange = 1 << 20;  // elements (these are filled one by one)

// grid: (blocks of a range, ranges)
__global__ void fill_ranges_with_zero(float* to, RangeList list) {
  const Range range = list.range[blockIdx.y];
  const int64_t first = range.begin + (int64_t{blockIdx.x} * kThreads + threadIdx.x) * 4;
  for (int64_t at = first; at < range.end; at += int64_t{gridDim.x} * kThreads * 4) {
    *reinterpret_cast<float4*>(to + at) = float4{};
  }
}

template <class Function>
void run(Context& context, const ConstView& from, const View& to, const Function& function) {
  const int64_t count = to.elements();
  if (count == 0) return;
  CudaStream& cuda = CudaStream::of(context);
  const unsigned blocks = blocks_of(count, kThreads * kEight);
  with_device_type(from.dtype(), [&](auto from_tag) {
    using From = decltype(from_tag);
    with_device_type(to.dtype(), [&](auto to_tag) {
      using To = decltype(to_tag);
      launch("transform", cuda, blocks, kThreads, transform<From, To, Function>,
             pointer<From>(from), pointer<To>(to), count, function);
    });
  });
}

}  // namespace

void cast(Context& context, const Cast& a) {
  run(context, a.from, a.to, Same{});
}

void add(Context& context, const Add& a) {
  run(context, a.x, a.y, Added{});
}

void fill_zero(Context& context, View x, std::span<const Range> ranges) {
  CudaStream& cuda = CudaStream::of(context);
  RangeList list;
  int count = 0;
  const auto fill_listed = [&] {
    if (count == 0) return;
    const dim3 grid(16, static_cast<unsigned>(count));
    launch("fill_zero", cuda, grid, kThreads, fill_ranges_with_zero, pointer<float>(x), list);
    count = 0;
  };
  for (const Range& range : ranges) {
    if (range.elements() > kLongRange) {
      fill(context, x.rows(range.begin, range.end), 0.0f);
      continue;
    }
    list.range[count++] = range;
    if (count == RangeList::kMost) fill_listed();
  }
  fill_listed();
}

void fill(Context& context, View x, float value) {
  const int64_t count = x.elements();
  if (count == 0) return;
  CudaStream& cuda = CudaStream::of(context);
  if (value == 0.0f && !std::signbit(value)) {
    check_cuda(cudaMemsetAsync(x.raw(), 0, static_cast<size_t>(x.size_bytes()), cuda.stream()),
               "cudaMemsetAsync");
    return;
  }
  with_device_type(x.dtype(), [&](auto tag) {
    using T = decltype(tag);
    launch("fill", cuda, blocks_of(count, kThreads * kEight), kThreads, fill_with<T>, pointer<T>(x),
           count, value);
  });
}

namespace {

// One thread per eight columns of a row.
template <typename T>
__global__ void drop(const T* x, int64_t rows, int64_t columns, DropoutPlan plan, T* y) {
  const int64_t width = (columns + kEight - 1) / kEight;
  const int64_t index = int64_t{blockIdx.x} * kThreads + threadIdx.x;
  const int64_t row = index / width, block = index % width;
  if (row >= rows) return;
  const int64_t at = row * columns + block * kEight, count = columns - block * kEight;
  Eight values = load_eight(x + at, count);
  drop_eight(values, plan, row_key_of(plan, row), static_cast<uint32_t>(block));
  store_eight(values, y + at, count);
}

}  // namespace

void dropout(Context& context, const DropoutForward& a) {
  const int64_t rows = a.x.extent(0), columns = a.x.extent(1);
  if (rows * columns == 0) return;
  CudaStream& cuda = CudaStream::of(context);
  const DropoutPlan plan(a.dropout);
  const unsigned blocks = blocks_of(rows * ((columns + kEight - 1) / kEight), kThreads);
  with_device_type(a.x.dtype(), [&](auto tag) {
    using T = decltype(tag);
    launch("dropout", cuda, blocks, kThreads, drop<T>, pointer<T>(a.x), rows, columns, plan,
           pointer<T>(a.y));
  });
}

}  // namespace onebit::ops::cuda
