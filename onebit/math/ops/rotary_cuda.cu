#include <cmath>

#include "onebit/math/kernels/kernel_cuda.h"
#include "onebit/math/ops/rotary.h"

namespace onebit::ops::cuda {

using namespace kernels;
using namespace kernels::cuda;

namespace {

constexpr int kThreads = 128;

template <typename T>
struct Call {
  const int32_t* positions;
  const float* turns;  // [position_count, 2 * half]
  int64_t position_count, rows, heads, half;
  float sign;
  T* qkv;  // [rows, 3 * heads * 2 * half]
};

// One thread per eight pairs of coordinates of a head of a query or key. A position outside the
// table turns them into NaN.
template <typename T>
__global__ void turn(Call<T> a) {
  const int64_t parts = (a.half + kEight - 1) / kEight;  // of a head
  const int64_t index = int64_t{blockIdx.x} * kThreads + threadIdx.x;
  const int64_t row = index / (2 * a.heads * parts), within = index % (2 * a.heads * parts);
  if (row >= a.rows) return;
  const int64_t head = within / parts, column = within % parts * kEight, count = a.half - column;
  const int64_t position = a.positions[row];
  const bool inside = position >= 0 && position < a.position_count;
  const float* turns = a.turns + (inside ? position : 0) * 2 * a.half + column;
  T* to = a.qkv + (row * 3 * a.heads + head) * 2 * a.half + column;
  Eight cosine, sine, first, second;
  load_eight_of_both(turns, turns + a.half, count, cosine, sine);
  load_eight_of_both(to, to + a.half, count, first, second);
  for (int i = 0; i < kEight; ++i) {
    const float c = inside ? cosine.lane[i] : nanf(""), s = sine.lane[i] * a.sign;
    const float x = first.lane[i], y = second.lane[i];
    first.lane[i] = fmaf(-y, s, x * c);
    second.lane[i] = fmaf(x, s, y * c);
  }
  store_eight(first, to, count);
  store_eight(second, to + a.half, count);
}

}  // namespace

void rotary(Context& context, const Rotary& a) {
  const int64_t rows = a.qkv.extent(0), half = a.turns.extent(1) / 2;
  if (rows * half == 0) return;
  CudaStream& cuda = CudaStream::of(context);
  const int64_t threads = rows * 2 * a.heads * blocks_of(half, kEight);
  with_device_type(a.qkv.dtype(), [&](auto tag) {
    using T = decltype(tag);
    const Call<T> call{.positions = a.positions.data<int32_t>(),
                       .turns = a.turns.data<float>(),
                       .position_count = a.turns.extent(0),
                       .rows = rows,
                       .heads = a.heads,
                       .half = half,
                       .sign = a.back ? -1.0f : 1.0f,
                       .qkv = pointer<T>(a.qkv)};
    launch("rotary", cuda, blocks_of(threads, kThreads), kThreads, turn<T>, call);
  });
}

}  // namespace onebit::ops::cuda
