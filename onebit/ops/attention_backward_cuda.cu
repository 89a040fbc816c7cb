#include <cmath>

#include "onebit/kernels/approximate_cuda.h"
#include "onebit/kernels/block_shared_cuda.h"
#include "onebit/ops/attention.h"
#include "onebit/ops/attention_place_cuda.h"
#include "onebit/ops/attention_plain_cuda.h"

namespace onebit::ops::cuda {

using namespace kernels;
using namespace kernels::cuda;

namespace {

constexpr int kKeys = 128;  // of a block: 16 for each warp
constexpr int kKeyThreads = kKeys / 16 * kWarp;
constexpr int kHalf = 32;  // half a tile: scores are computed in halves to stay in registers
constexpr int kBlocks = kHalf / 8;
constexpr int kWarps = 4;

// delta [heads, rows] = grad_context . context of one head of 64 columns. Eight threads per row and
// head.
template <typename T>
__global__ void tile_row_products(const T* grad_context, const T* context, int64_t rows,
                                  int64_t heads, float* delta) {
  const int64_t index = (int64_t{blockIdx.x} * kTileThreads + threadIdx.x) / kEight;
  const int64_t row = index / heads, head = index % heads;
  float sum = 0;
  if (row < rows) {
    const int64_t at = index * kTileHead + threadIdx.x % kEight * kEight;
    const Eight left = load_whole(grad_context + at), right = load_whole(context + at);
    for (int i = 0; i < kEight; ++i) sum = fmaf(left.lane[i], right.lane[i], sum);
  }
  for (int distance = kEight / 2; distance > 0; distance /= 2) {
    sum += __shfl_xor_sync(kAllLanes, sum, distance);
  }
  if (row < rows && threadIdx.x % kEight == 0) delta[head * rows + row] = sum;
}

// The same for any head size. One warp per row and head.
template <typename T>
__global__ void row_products(const T* grad_context, const T* context, int64_t rows, int64_t heads,
                             int64_t head_size, float* delta) {
  const int64_t index = int64_t{blockIdx.x} * kWarps + threadIdx.y;
  const int64_t row = index / heads, head = index % heads;
  if (row >= rows) return;
  const int64_t at = (row * heads + head) * head_size;
  float sum = 0;
  for (int64_t i = threadIdx.x; i < head_size; i += kWarp) {
    sum = fmaf(widen(grad_context[at + i]), widen(context[at + i]), sum);
  }
  sum = warp_sum(sum);
  if (threadIdx.x == 0) delta[head * rows + row] = sum;
}

// Keep bits of a warp's 16 keys over a tile of queries: bit k of a query's word belongs to key k.
struct alignas(4) KeyMask {
  uint16_t word[kKeys / 16][kTile];

  template <typename T>
  __device__ void draw(const AttentionCall<T>& a, const TileKeys& keys, const TilePlace& at) {
    __syncwarp();  // the previous bits have been read
    auto* bytes = reinterpret_cast<uint8_t*>(word[at.warp]);
    const int block = (at.begin + at.warp * 16) / 8 + at.lane % 2;
#pragma unroll
    for (int i = 0; i < 2 * kTile; i += kWarp) {
      bytes[i + at.lane] =
          static_cast<uint8_t>(a.keep_bits(keys.of[(i + at.lane) / 2], at.head, block));
    }
    __syncwarp();
  }
  // Of the thread's elements in a block of queries that begins at `query` of the tile: bit
  // 16 (i % 2) + 8 (i / 2) belongs to element i.
  __device__ uint32_t mine(const TilePlace& at, int query) const {
    const auto* pairs = reinterpret_cast<const uint32_t*>(word[at.warp]);
    return rotated_down(pairs[query / 2 + at.lane % 4], at.lane / 4);
  }
};

template <typename T>
struct Shared {
  Tile<T, kKeys> key, value, grad_score;  // grad_score: [key, query]
  Tile<T> query[2], grad[2];
  alignas(8) float log_sum[2][kTile], delta[2][kTile];
  TileKeys row_keys[2];
  KeyMask mask;
};

template <typename T>
__device__ void start_keys(Shared<T>& shared, const AttentionCall<T>& a, const TilePlace& at) {
  const T* from = a.qkv + a.place(at.first + at.begin, 1, at.head);
  const int count = at.length - at.begin;
  start_load<kKeyThreads>(shared.key, from, 3 * a.hidden, count);
  start_load<kKeyThreads>(shared.value, from + a.hidden, 3 * a.hidden, count);
}

template <typename T>
__device__ void start_queries(Shared<T>& shared, const AttentionCall<T>& a, const TilePlace& at,
                              int query, int slot) {
  const int count = at.length - query;
  start_load<kKeyThreads>(shared.query[slot], a.qkv + a.place(at.first + query, 0, at.head),
                          3 * a.hidden, count);
  start_load<kKeyThreads>(shared.grad[slot],
                          a.grad_context + a.mixed_place(at.first + query, at.head), a.hidden,
                          count);
  end_copy_group();
  if (a.dropout.threshold > 0) shared.row_keys[slot].load(a, at, query);
  const int i = static_cast<int>(threadIdx.x);
  if (i >= kTile) return;
  const int64_t place = at.head * a.rows + at.first + query + i;
  shared.log_sum[slot][i] = i < count ? a.log_sum_exp[place] * kLog2E : INFINITY;
  shared.delta[slot][i] = i < count ? a.delta[place] : 0.0f;
}

// For half a tile of queries: writes dropped probabilities to `weight` (input: products) and
// gradients of scores to `gradient` (input: gradients of dropped probabilities).
template <typename T>
__device__ void key_scores(const Shared<T>& shared, const AttentionCall<T>& a, const TilePlace& at,
                           int slot, int part, float (&weight)[kBlocks][4],
                           float (&gradient)[kBlocks][4]) {
  const bool drops = a.dropout.threshold > 0;
#pragma unroll
  for (int j = 0; j < kBlocks; ++j) {
    const int begin = part * kHalf + j * 8, query = begin + at.lane % 4 * 2;
    const float2 log_sum = *reinterpret_cast<const float2*>(&shared.log_sum[slot][query]);
    const float2 delta = *reinterpret_cast<const float2*>(&shared.delta[slot][query]);
    const uint32_t kept = drops ? shared.mask.mine(at, begin) : ~0u;
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const float p = approximate_exp2(
          fmaf(weight[j][i], a.scale * kLog2E, i % 2 == 0 ? -log_sum.x : -log_sum.y));
      const float factor = (kept >> (i % 2 * 16 + i / 2 * 8) & 1u) != 0 ? a.dropout.scale : 0.0f;
      weight[j][i] = p * factor;
      gradient[j][i] = p * fmaf(gradient[j][i], factor, i % 2 == 0 ? -delta.x : -delta.y);
    }
  }
}

// Stores the gradients of the scores of half a tile of queries; 0 for keys that do not exist.
template <typename T>
__device__ void store_scores(Shared<T>& shared, const TilePlace& at, int part,
                             float (&gradient)[kBlocks][4]) {
  const int row = at.warp * 16 + at.lane / 4;
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    const bool exists = at.begin + row + half * 8 < at.length;
    T* to = shared.grad_score.data + (row + half * 8) * kTileRow + part * kHalf + at.lane % 4 * 2;
#pragma unroll
    for (int j = 0; j < kBlocks; ++j) {
      const auto& pair = gradient[j];
      *reinterpret_cast<uint32_t*>(to + j * 8) =
          exists ? packed(pair[2 * half], pair[2 * half + 1], T{}) : 0u;
    }
  }
}

// This block's part of the gradient of a tile of queries: a warp computes 16 of them by 32 columns.
// A sequence's tiles of keys are added in order, and each element always by the same thread.
template <typename T>
__device__ void add_to_queries(const Shared<T>& shared, const AttentionCall<T>& a,
                               const TilePlace& at, int query) {
  const int rows = at.warp % 4 * 16, columns = at.warp / 4 * 32;
  const int groups = (min(kKeys, at.length - at.begin) + 15) / 16;  // of 16 keys
  float sum[4][4] = {};
#pragma unroll
  for (int k = 0; k < kKeys / 16; ++k) {
    if (k >= groups) break;
    const Quad left = load_transposed(shared.grad_score.address(
        k * 16 + at.lane / 16 * 8 + at.lane % 8, rows + at.lane / 8 % 2 * 8));
#pragma unroll
    for (int j = 0; j < 2; ++j) {
      const Quad b = load_transposed(
          shared.key.address(k * 16 + at.lane % 16, columns + j * 16 + at.lane / 16 * 8));
      multiply_add(sum[2 * j], left, b.word[0], b.word[1], T{});
      multiply_add(sum[2 * j + 1], left, b.word[2], b.word[3], T{});
    }
  }
  const bool is_first = at.begin == 0, is_last = at.begin + kKeys >= at.length;
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    const int row = query + rows + at.lane / 4 + half * 8;
    if (row >= at.length) continue;
    const int column = columns + at.lane % 4 * 2;
    float* kept = a.grad_query + a.mixed_place(at.first + row, at.head) + column;
    T* to = a.grad_qkv + a.place(at.first + row, 0, at.head) + column;
#pragma unroll
    for (int j = 0; j < 4; ++j) {
      float2 pair{sum[j][2 * half], sum[j][2 * half + 1]};
      auto* before = reinterpret_cast<float2*>(kept + j * 8);
      if (!is_first) pair = {pair.x + before->x, pair.y + before->y};
      if (is_last) {
        *reinterpret_cast<uint32_t*>(to + j * 8) = packed(pair.x * a.scale, pair.y * a.scale, T{});
      } else {
        *before = pair;
      }
    }
  }
}

// All gradients of one head of one sequence: loops over tiles of keys and, within them, over tiles
// of queries.
template <typename T>
__global__ void __launch_bounds__(kKeyThreads, 2) tiled_backward(AttentionCall<T> a) {
  auto& shared = launch_shared<Shared<T>>();
  TilePlace at(a.starts, 0);
  for (; at.begin < at.length; at.begin += kKeys) {
    __syncthreads();  // the previous keys have been read
    start_keys(shared, a, at);
    start_queries(shared, a, at, 0, 0);
    float grad_key[8][4] = {}, grad_value[8][4] = {};
    for (int query = 0; query < at.length; query += kTile) {
      wait_for_copies();
      __syncthreads();
      const int slot = query / kTile % 2;
      if (query + kTile < at.length) start_queries(shared, a, at, query + kTile, 1 - slot);
      if (at.begin + at.warp * 16 < at.length) {
        if (a.dropout.threshold > 0) shared.mask.draw(a, shared.row_keys[slot], at);
#pragma unroll
        for (int part = 0; part < 2; ++part) {
          float weight[kBlocks][4], gradient[kBlocks][4];
          product_transposed(load_rows(shared.key, at.warp, at.lane), shared.query[slot],
                             part * kHalf, at.lane, weight);
          product_transposed(load_rows(shared.value, at.warp, at.lane), shared.grad[slot],
                             part * kHalf, at.lane, gradient);
          key_scores(shared, a, at, slot, part, weight, gradient);
          store_scores(shared, at, part, gradient);
          add_product(weight, shared.grad[slot], part * kHalf, at.lane, grad_value);
          add_product(gradient, shared.query[slot], part * kHalf, at.lane, grad_key);
        }
      }
      __syncthreads();
      add_to_queries(shared, a, at, query);
    }
    T* to = a.grad_qkv + a.place(at.first + at.begin, 1, at.head);
    const int left = at.length - at.begin;
    store_rows(grad_key, a.scale, a.scale, to, 3 * a.hidden, left, at.warp, at.lane);
    store_rows(grad_value, 1.0f, 1.0f, to + a.hidden, 3 * a.hidden, left, at.warp, at.lane);
  }
}

template <typename T>
void run_tiles(CudaStream& cuda, const AttentionBackward& a, float* delta) {
  const int64_t rows = a.qkv.extent(0);
  launch("row_products", cuda, blocks_of(rows * a.heads * kEight, kTileThreads), kTileThreads,
         tile_row_products<T>, pointer<T>(a.grad_context), pointer<T>(a.context), rows, a.heads,
         delta);
  const dim3 tiles = attention_grid(a.sequence_starts, a.heads, kKeys);
  auto call = attention_call<T>(a);
  const Scratch::Block memory = cuda.scratch().take(tiles.x > 1 ? rows * call.hidden * 4 : 0);
  call.grad_context = pointer<T>(a.grad_context);
  call.delta = delta;
  call.grad_query = memory.as<float>();
  call.grad_qkv = pointer<T>(a.grad_qkv);
  launch_with_shared<Shared<T>>("tiled_attention_backward", cuda, dim3(1, tiles.y, tiles.z),
                                kKeyThreads, tiled_backward<T>, call);
}

}  // namespace

void attention_backward(Context& context, const AttentionBackward& a) {
  const int64_t rows = a.qkv.extent(0), head_size = a.qkv.extent(1) / 3 / a.heads;
  if (rows * head_size == 0) return;
  CudaStream& cuda = CudaStream::of(context);
  const auto memory = cuda.scratch().take(a.heads * rows * 4);
  float* delta = memory.as<float>();
  if (!suits_tiles(a.qkv, a.grad_context, a.heads) || !suits_tiles(a.qkv, a.context, a.heads)) {
    with_device_type(a.qkv.dtype(), [&](auto tag) {
      using T = decltype(tag);
      launch("row_products", cuda, blocks_of(rows * a.heads, kWarps), dim3(kWarp, kWarps),
             row_products<T>, pointer<T>(a.grad_context), pointer<T>(a.context), rows, a.heads,
             head_size, delta);
    });
    return plain_attention_backward(cuda, a, delta);
  }
  if (a.qkv.dtype() == DType::kBF16) return run_tiles<__nv_bfloat16>(cuda, a, delta);
  run_tiles<__half>(cuda, a, delta);
}

}  // namespace onebit::ops::cuda
