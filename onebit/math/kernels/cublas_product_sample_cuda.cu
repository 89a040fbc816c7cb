#include "onebit/math/kernels/cublas_product.h"

#include <algorithm>

#include "onebit/math/kernels/kernel_cuda.h"

namespace onebit::kernels::cuda {
namespace {

constexpr int kThreads = 256;
constexpr int64_t kMaxBlocks = 1024;
constexpr int64_t kShuffle = 1000003;  // prime
constexpr int64_t kSpareBytes = int64_t{256} << 20;

__device__ uint64_t mixed(uint64_t x) {
  x = (x ^ x >> 30) * 0xBF58476D1CE4E5B9ull;
  x = (x ^ x >> 27) * 0x94D049BB133111EBull;
  return x ^ x >> 31;
}

// Values of either sign within [2, 512): products span more bits than an f32 sum has, so that each
// addition rounds, and the rounding errors of a zero sum are not subnormal in f16.
__device__ float random_value(uint64_t bits) {
  const float mantissa = 1.0f + static_cast<float>(bits >> 41) * 0x1p-23f;
  const float size = ldexpf(mantissa, 1 + static_cast<int>(bits & 7));
  return (bits & 8) != 0 ? -size : size;
}

// An operand [outer, inner], one of whose extents is k. Along k the second half is the first one,
// or its negative, in another order, and the last element of an odd k is zero.
template <typename T>
__global__ void fill_operand(T* to, int64_t outer, int64_t inner, bool k_is_inner, bool opposite,
                             uint64_t seed) {
  const int64_t at = int64_t{blockIdx.x} * kThreads + threadIdx.x;
  if (at >= outer * inner) return;
  const int64_t p = k_is_inner ? at % inner : at / inner;
  const int64_t other = k_is_inner ? at / inner : at % inner;
  const int64_t half = (k_is_inner ? inner : outer) / 2;
  const bool second = half > 0 && p >= half;
  const int64_t twin = second ? (p - half) * kShuffle % half : p;
  const auto number = static_cast<uint64_t>(other * half + twin);
  const float value = random_value(mixed(mixed(number + seed)));
  to[at] = narrow<T>(p >= 2 * half ? 0.0f : second && opposite ? -value : value);
}

// *sum += a number for each word and its position. Unsigned addition does not depend on order.
__global__ void add_fingerprint(const uint32_t* words, int64_t count, uint64_t seed,
                                unsigned long long* sum) {
  unsigned long long mine = 0;
  for (int64_t at = int64_t{blockIdx.x} * kThreads + threadIdx.x; at < count;
       at += int64_t{gridDim.x} * kThreads) {
    mine += mixed(mixed(static_cast<uint64_t>(at) + seed) + words[at]);
  }
  mine = warp_sum(mine);
  if (threadIdx.x % kWarp == 0) atomicAdd(sum, mine);
}

int64_t vector_bytes(const MatrixProduct& p) {
  if (p.epilogue == Epilogue::kRowSums) return p.row_sums.size_bytes();
  return p.bias.empty() ? 0 : p.n() * size_bytes_of(p.c.dtype());
}
int64_t beside_bytes(const MatrixProduct& p) {
  const bool needed = !p.pre_activation.empty() || !p.saved.empty();
  return needed ? p.c.size_bytes() : 0;
}

void fill(CudaStream& cuda, const View& operand, bool k_is_inner, bool opposite, uint64_t seed) {
  with_device_type(operand.dtype(), [&](auto tag) {
    using T = decltype(tag);
    launch("fill_operand", cuda, blocks_of(operand.elements(), kThreads), kThreads, fill_operand<T>,
           pointer<T>(operand), operand.extent(0), operand.extent(1), k_is_inner, opposite, seed);
  });
}

}  // namespace

bool ProductSample::fits(const MatrixProduct& like) {
  const int64_t bytes = like.a.size_bytes() + like.b.size_bytes() + like.c.size_bytes() +
                        beside_bytes(like) + vector_bytes(like) + kSpareBytes;
  size_t free_bytes = 0, total_bytes = 0;
  check_cuda(cudaMemGetInfo(&free_bytes, &total_bytes), "cudaMemGetInfo");
  return static_cast<int64_t>(free_bytes) >= bytes;
}

ProductSample::ProductSample(CudaStream& cuda, const MatrixProduct& like)
    : cuda_(cuda),
      product_(like),
      a_(like.a.device(), like.a.size_bytes()),
      b_(like.b.device(), like.b.size_bytes()),
      c_(like.c.device(), like.c.size_bytes()),
      beside_(like.c.device(), beside_bytes(like)),
      vector_(like.c.device(), vector_bytes(like)),
      sum_(like.c.device(), sizeof(uint64_t)) {
  const auto placed = [](const Buffer& memory, const ConstView& view) {
    return View(memory.data(), view.dtype(), view.shape(), view.device());
  };
  const View a = placed(a_, like.a), b = placed(b_, like.b);
  fill(cuda, a, !like.a_transposed, true, 1);
  fill(cuda, b, like.b_transposed, false, 2);
  product_.a = a;
  product_.b = b;
  product_.c = placed(c_, like.c);
  if (!like.pre_activation.empty()) product_.pre_activation = placed(beside_, like.pre_activation);
  if (!like.saved.empty()) product_.saved = placed(beside_, like.saved);
}

void ProductSample::clear() {
  for (const Buffer* memory : {&c_, &beside_, &vector_, &sum_}) {
    if (memory->size_bytes() == 0) continue;
    check_cuda(cudaMemsetAsync(memory->data(), 0, static_cast<size_t>(memory->size_bytes()),
                               cuda_.stream()),
               "cudaMemsetAsync");
  }
}

uint64_t ProductSample::fingerprint() {
  uint64_t seed = 1;
  for (const Buffer* memory : {&c_, &beside_, &vector_}) {
    const int64_t words = memory->size_bytes() / static_cast<int64_t>(sizeof(uint32_t));
    if (words == 0) continue;
    const unsigned blocks = blocks_of(std::min(words, kMaxBlocks * kThreads), kThreads);
    launch("add_fingerprint", cuda_, blocks, kThreads, add_fingerprint,
           reinterpret_cast<const uint32_t*>(memory->data()), words, seed++ << 48,
           reinterpret_cast<unsigned long long*>(sum_.data()));
  }
  uint64_t sum = 0;
  cuda_.download(&sum, sum_.data(), sizeof sum);
  return sum;
}

}  // namespace onebit::kernels::cuda
