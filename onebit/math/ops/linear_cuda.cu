// Matrix products: cuBLASLt if rows are whole multiples of 16 bytes, our own plain kernel for the
// small odd shapes that are not (a classifier of two labels).
#include "onebit/math/kernels/block_shared_cuda.h"
#include "onebit/math/kernels/column_partials_cuda.h"
#include "onebit/math/kernels/cublas_product.h"
#include "onebit/math/kernels/kernel_cuda.h"
#include "onebit/math/kernels/matrix_product.h"
#include "onebit/math/ops/elementwise.h"
#include "onebit/math/ops/linear.h"

namespace onebit::ops::cuda {

using namespace kernels;
using namespace kernels::cuda;

namespace {

constexpr int kTile = 16;
// Thread blocks that fill a device. They depend on no device, for the same bits on all.
constexpr int64_t kManyBlocks = 4096;

// Strides of a row-major operand: element (i, p) is data[i * row + p * step].
template <typename T>
struct Operand {
  const T* data;
  int64_t row, step;
};

struct Tiles {
  float left[kTile][kTile + 1], right[kTile][kTile + 1];
};

// One thread's element of a tile of c, [m, n].
struct Element {
  int x = static_cast<int>(threadIdx.x), y = static_cast<int>(threadIdx.y);
  int64_t row = int64_t{blockIdx.y} * kTile + y, column = int64_t{blockIdx.x} * kTile + x;
};

// The sum over [begin, end) of k, in order. All threads of the block call it.
template <typename T>
__device__ float sum_of(const Operand<T>& a, const Operand<T>& b, int64_t m, int64_t n,
                        int64_t begin, int64_t end) {
  auto& [left, right] = block_shared<Tiles>();
  const auto [x, y, row, column] = Element();
  float sum = 0;
  for (int64_t p = begin; p < end; p += kTile) {
    left[y][x] = row < m && p + x < end ? widen(a.data[row * a.row + (p + x) * a.step]) : 0.0f;
    right[y][x] =
        column < n && p + y < end ? widen(b.data[(p + y) * b.row + column * b.step]) : 0.0f;
    __syncthreads();
    for (int i = 0; i < kTile; ++i) sum = fmaf(left[y][i], right[i][x], sum);
    __syncthreads();
  }
  return sum;
}

// One thread block per tile of c, one thread per element.
template <typename T, typename Result, typename Bias>
__global__ void plain_product(Operand<T> a, Operand<T> b, const Bias* bias, int64_t m, int64_t n,
                              int64_t k, bool accumulate, Result* c) {
  float sum = sum_of(a, b, m, n, 0, k);
  const auto [x, y, row, column] = Element();
  if (row >= m || column >= n) return;
  if (bias != nullptr) sum += widen(bias[column]);
  if (accumulate) sum += widen(c[row * n + column]);
  c[row * n + column] = narrow<Result>(sum);
}

template <typename T, typename Result, typename Bias = float>
void run_plain(CudaStream& cuda, const MatrixProduct& p) {
  const int64_t m = p.m(), n = p.n(), k = p.k();
  const Operand<T> a{pointer<T>(p.a), p.a_transposed ? 1 : k, p.a_transposed ? m : 1};
  const Operand<T> b{pointer<T>(p.b), p.b_transposed ? 1 : n, p.b_transposed ? k : 1};
  const dim3 grid(blocks_of(n, kTile), blocks_of(m, kTile));
  launch("plain_product", cuda, grid, dim3(kTile, kTile), plain_product<T, Result, Bias>, a, b,
         pointer<Bias>(p.bias), m, n, k, p.accumulate, pointer<Result>(p.c));
}

// As above for a part of k per block of the grid's third dimension, into partials [parts, m, n].
template <typename T>
__global__ void product_of_parts(Operand<T> a, Operand<T> b, int64_t m, int64_t n, int64_t k,
                                 int64_t part, float* partials) {
  const int64_t begin = blockIdx.z * part, end = begin + part;
  const float sum = sum_of(a, b, m, n, begin, end < k ? end : k);
  const auto [x, y, row, column] = Element();
  if (row < m && column < n) partials[(blockIdx.z * m + row) * n + column] = sum;
}

// c = a^T . b, or added to c. The gradient of a head's few outputs has few tiles and as many rows
// as a micro-batch has tokens: the rows are cut into parts.
template <typename T>
void multiply_by_parts(CudaStream& cuda, const MatrixProduct& p) {
  const int64_t m = p.m(), n = p.n(), k = p.k();
  if (k == 0) return run_plain<T, float>(cuda, p);
  const dim3 tiles(blocks_of(n, kTile), blocks_of(m, kTile));
  const int64_t most = std::max<int64_t>(1, kManyBlocks / (int64_t{tiles.x} * tiles.y));
  const int64_t part = kTile * blocks_of(blocks_of(k, kTile), most);  // rows
  const unsigned parts = blocks_of(k, part);
  if (parts == 1) return run_plain<T, float>(cuda, p);
  DevicePartials partials(cuda, parts, m * n, 1);
  launch("product_of_parts", cuda, dim3(tiles.x, tiles.y, parts), dim3(kTile, kTile),
         product_of_parts<T>, Operand<T>{pointer<T>(p.a), 1, m}, Operand<T>{pointer<T>(p.b), n, 1},
         m, n, k, part, partials.data());
  if (!p.accumulate) {
    check_cuda(cudaMemsetAsync(p.c.raw(), 0, static_cast<size_t>(p.c.size_bytes()), cuda.stream()),
               "cudaMemsetAsync");
  }
  partials.add_to({p.c.data<float>()});
}

// The bias rounded to c's type, which cuBLASLt reads. The result is in `memory`.
View bias_for_cublas(Context& context, const MatrixProduct& p, const Scratch::Block& memory) {
  const View rounded(memory.data(), p.c.dtype(), {p.n()}, context.device());
  cast(context, {.from = p.bias, .to = rounded});
  return rounded;
}

bool run_on_cublas(Context& context, const MatrixProduct& exact) {
  CudaStream& cuda = CudaStream::of(context);
  MatrixProduct p = exact;
  p.tf32 = cuda.allows_tf32() && p.a.dtype() == DType::kF32;
  if (p.epilogue == Epilogue::kRowSums) {  // cuBLASLt overwrites the sums
    const auto memory = cuda.scratch().take(p.row_sums.size_bytes());
    const View sums(memory.data(), DType::kF32, p.row_sums.shape(), context.device());
    if (!cublas_product(cuda, p, sums.raw())) return false;
    add(context, {.x = sums, .y = p.row_sums});
    return true;
  }
  if (p.bias.empty() || p.bias.dtype() == p.c.dtype()) {
    return cublas_product(cuda, p, const_cast<void*>(p.bias.raw()));
  }
  const auto memory = cuda.scratch().take(p.n() * size_bytes_of(p.c.dtype()));
  return cublas_product(cuda, p, bias_for_cublas(context, p, memory).raw());
}

// Whether cuBLASLt has the epilogue. Its tanh is approximate, which would be visible in f32.
bool suits_epilogue(const MatrixProduct& p) {
  const bool gelu =
      p.epilogue == Epilogue::kBiasGeluTanh || p.epilogue == Epilogue::kGeluTanhGradient;
  return !gelu || p.c.dtype() != DType::kF32;
}

}  // namespace

bool matrix_product(Context& context, const MatrixProduct& p) {
  const bool plain = p.epilogue == Epilogue::kNone || p.epilogue == Epilogue::kBias;
  const bool nothing = p.m() * p.n() == 0 || (p.k() == 0 && p.accumulate);
  if (nothing) return plain;
  if (p.k() > 0 && suits_cublas(p)) {
    const bool done = suits_epilogue(p) && run_on_cublas(context, p);
    require(done || !plain, "cuBLASLt has no algorithm for {} [{} x {}] . [{} x {}]",
            name_of(p.a.dtype()), p.m(), p.k(), p.k(), p.n());
    return done;
  }
  if (!plain) return false;
  with_device_type(p.a.dtype(), [&](auto tag) {
    using T = decltype(tag);
    if (p.a_transposed && !p.b_transposed && p.epilogue == Epilogue::kNone &&
        p.c.dtype() == DType::kF32) {
      multiply_by_parts<T>(CudaStream::of(context), p);
    } else if (p.c.dtype() == DType::kF32) {
      run_plain<T, float>(CudaStream::of(context), p);
    } else if (p.bias.dtype() == p.c.dtype()) {
      run_plain<T, T, T>(CudaStream::of(context), p);
    } else {
      run_plain<T, T>(CudaStream::of(context), p);
    }
  });
  return true;
}

// Every device architecture that this build targets multiplies bf16 natively.
bool bf16_is_native(Context&) {
  return true;
}

bool pack_constant_weight(Context&, const PackConstantWeight&) {
  return false;
}

}  // namespace onebit::ops::cuda
