#include "onebit/ops/matmul_cuda.h"

#include "onebit/ops/cublas_product.h"
#include "onebit/ops/cuda_ops.h"
#include "onebit/ops/kernel_cuda.h"

namespace onebit::ops::cuda {
namespace {

constexpr int kTile = 16;

// How a row-major operand is walked: element (i, p) is data[i * row + p * step].
template <typename T>
struct Operand {
  const T* data;
  int64_t row, step;
};

// A block makes a tile of c, a thread an element; sums run over k in order.
template <typename T, typename Result>
__global__ void plain_product(Operand<T> a, Operand<T> b, const float* bias, int64_t m, int64_t n,
                              int64_t k, bool accumulate, Result* c) {
  __shared__ float left[kTile][kTile + 1], right[kTile][kTile + 1];
  const int x = static_cast<int>(threadIdx.x), y = static_cast<int>(threadIdx.y);
  const int64_t row = int64_t{blockIdx.y} * kTile + y, column = int64_t{blockIdx.x} * kTile + x;
  float sum = 0;
  for (int64_t p = 0; p < k; p += kTile) {
    left[y][x] = row < m && p + x < k ? widen(a.data[row * a.row + (p + x) * a.step]) : 0.0f;
    right[y][x] = column < n && p + y < k ? widen(b.data[(p + y) * b.row + column * b.step]) : 0.0f;
    __syncthreads();
    for (int i = 0; i < kTile; ++i) sum = fmaf(left[y][i], right[i][x], sum);
    __syncthreads();
  }
  if (row >= m || column >= n) return;
  if (bias != nullptr) sum += bias[column];
  if (accumulate) sum += widen(c[row * n + column]);
  c[row * n + column] = narrow<Result>(sum);
}

template <typename T, typename Result>
void run_plain(CudaStream& door, const Matmul& call) {
  const Operand<T> a{static_cast<const T*>(call.a), call.a_transposed ? 1 : call.k,
                     call.a_transposed ? call.m : 1};
  const Operand<T> b{static_cast<const T*>(call.b), call.b_transposed ? 1 : call.n,
                     call.b_transposed ? call.k : 1};
  const dim3 grid(blocks_of(call.n, kTile), blocks_of(call.m, kTile));
  plain_product<T, Result><<<grid, dim3(kTile, kTile), 0, door.stream()>>>(
      a, b, call.bias, call.m, call.n, call.k, call.accumulate, static_cast<Result*>(call.c));
  check_launch("plain_product");
}

}  // namespace

void matmul(Context& context, const Matmul& call) {
  if (call.m * call.n == 0 || (call.k == 0 && call.accumulate)) return;
  CudaStream& door = CudaStream::of(context);
  if (call.k > 0 && suits_cublas(call)) {
    const bool casts = call.bias != nullptr && call.result != DType::kF32;
    const auto memory = door.scratch().take(casts ? call.n * size_bytes_of(call.result) : 0);
    const void* bias = call.bias;
    if (casts) {
      const View rounded(memory.data(), call.result, {call.n}, context.device());
      cast(context,
           {.from = ConstView(call.bias, DType::kF32, {call.n}, context.device()), .to = rounded});
      bias = rounded.raw();
    }
    return cublas_product(door, call, bias);
  }
  with_device_type(call.operands, [&](auto tag) {
    using T = decltype(tag);
    if (call.result == DType::kF32) {
      run_plain<T, float>(door, call);
    } else {
      run_plain<T, T>(door, call);
    }
  });
}

}  // namespace onebit::ops::cuda
