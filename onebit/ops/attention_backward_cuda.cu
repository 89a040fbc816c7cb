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

template <typename T>
struct QueryShared {
  Tile<T> key[2], value[2];
  TileKeys row_keys;
  QueryMask mask;
};

template <typename T>
__device__ void start_keys(QueryShared<T>& shared, const AttentionCall<T>& a, const TilePlace& at,
                           int key, int slot) {
  const T* from = a.qkv + a.place(at.first + key, 1, at.head);
  start_load(shared.key[slot], from, 3 * a.hidden, at.length - key);
  start_load(shared.value[slot], from + a.hidden, 3 * a.hidden, at.length - key);
  end_copy_group();
}

// Stores the bits that the warp's queries have drawn over a tile of keys.
template <typename T>
__device__ void store_kept(const QueryMask& mask, const AttentionCall<T>& a, const TilePlace& at,
                           int key) {
  const int query = at.begin + at.warp * 16 + at.lane;
  if (at.lane >= 16 || query >= at.length) return;
  const auto* words = reinterpret_cast<const uint64_t*>(mask.byte[at.warp]);
  *a.kept_word(at.first + query, at.head, key / kTile) = words[at.lane];
}

// Zeros for keys, from `key` on, that do not exist.
__device__ void clear_absent(const TilePlace& at, int key, float (&gradient)[kBlocks][4]) {
#pragma unroll
  for (int j = 0; j < kBlocks; ++j) {
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      if (key + j * 8 + at.lane % 4 * 2 + i % 2 >= at.length) gradient[j][i] = 0.0f;
    }
  }
}

// Gradients of the queries: one thread block per tile of queries.
template <typename T>
__global__ void __launch_bounds__(kTileThreads, 4) tiled_queries(AttentionCall<T> a) {
  auto& shared = block_shared<QueryShared<T>>();
  const TilePlace at(a.starts);
  if (!at.exists()) return;
  const int left = at.length - at.begin;
  start_load(shared.key[1], a.qkv + a.place(at.first + at.begin, 0, at.head), 3 * a.hidden, left);
  start_load(shared.value[1], a.grad_context + a.mixed_place(at.first + at.begin, at.head),
             a.hidden, left);
  start_keys(shared, a, at, 0, 0);
  if (a.dropout.threshold > 0) shared.row_keys.load(a, at, at.begin);
  float log_sum[2], delta[2];
  for (int half = 0; half < 2; ++half) {
    const int query = at.begin + at.warp * 16 + at.lane / 4 + half * 8;
    const int64_t place = at.head * a.rows + at.first + query;
    log_sum[half] = query < at.length ? a.log_sum_exp[place] * kLog2E : INFINITY;
    delta[half] = query < at.length ? a.delta[place] : 0.0f;
  }
  Rows16 query, grad;
  float sum[8][4] = {};
  for (int key = 0; key < at.length; key += kTile) {
    wait_for_copies();
    __syncthreads();
    if (key == 0) {  // the queries use the memory of the second tile of keys
      query = load_rows(shared.key[1], at.warp, at.lane);
      grad = load_rows(shared.value[1], at.warp, at.lane);
      __syncthreads();
    }
    const int slot = key / kTile % 2;
    if (key + kTile < at.length) start_keys(shared, a, at, key + kTile, 1 - slot);
    QueryMask::Mine mask{{~0u, ~0u}, {~0u, ~0u}};
    if (a.dropout.threshold > 0) {
      mask = shared.mask.draw(a, shared.row_keys, at, key);
      store_kept(shared.mask, a, at, key);
    }
#pragma unroll
    for (int part = 0; part < 2; ++part) {
      float score[kBlocks][4], grad_score[kBlocks][4];
      product_transposed(query, shared.key[slot], part * kHalf, at.lane, score);
      product_transposed(grad, shared.value[slot], part * kHalf, at.lane, grad_score);
#pragma unroll
      for (int j = 0; j < kBlocks; ++j) {
#pragma unroll
        for (int i = 0; i < 4; ++i) {
          const float p = approximate_exp2(fmaf(score[j][i], a.scale * kLog2E, -log_sum[i / 2]));
          const float factor = mask.keeps(part * kBlocks + j, i) ? a.dropout.scale : 0.0f;
          grad_score[j][i] = p * fmaf(grad_score[j][i], factor, -delta[i / 2]);
        }
      }
      if (key + kTile > at.length) clear_absent(at, key + part * kHalf, grad_score);
      add_product(grad_score, shared.key[slot], part * kHalf, at.lane, sum);
    }
  }
  store_rows(sum, a.scale, a.scale, a.grad_qkv + a.place(at.first + at.begin, 0, at.head),
             3 * a.hidden, left, at.warp, at.lane);
}

template <typename T>
struct KeyShared {
  Tile<T> query[2], grad[2];
  alignas(8) float log_sum[2][kTile], delta[2][kTile];
  uint64_t kept[2][kTile];  // a query's bits over the tile of keys

  // Of the thread's elements in a block of queries that begins at `first` of the tile: bit
  // 16 (i % 2) + 8 (i / 2) belongs to element i.
  __device__ uint32_t kept_of(const TilePlace& at, int slot, int first) const {
    const auto* halves = reinterpret_cast<const uint16_t*>(kept[slot]) + at.warp;
    const int mine = first + at.lane % 4 * 2;
    const uint32_t pair = halves[4 * mine] | uint32_t{halves[4 * mine + 4]} << 16;
    return rotated_down(pair, at.lane / 4);
  }
};

template <typename T>
__device__ void start_queries(KeyShared<T>& shared, const AttentionCall<T>& a, const TilePlace& at,
                              int query, int slot) {
  const int count = at.length - query;
  start_load(shared.query[slot], a.qkv + a.place(at.first + query, 0, at.head), 3 * a.hidden,
             count);
  start_load(shared.grad[slot], a.grad_context + a.mixed_place(at.first + query, at.head), a.hidden,
             count);
  end_copy_group();
  const int i = static_cast<int>(threadIdx.x);
  if (i >= kTile) return;
  if (a.dropout.threshold > 0) {
    shared.kept[slot][i] =
        i < count ? *a.kept_word(at.first + query + i, at.head, at.begin / kTile) : 0;
  }
  const int64_t place = at.head * a.rows + at.first + query + i;
  shared.log_sum[slot][i] = i < count ? a.log_sum_exp[place] * kLog2E : INFINITY;
  shared.delta[slot][i] = i < count ? a.delta[place] : 0.0f;
}

// For half a tile of queries: writes dropped probabilities to `weight` (input: products) and
// gradients of scores to `gradient` (input: gradients of dropped probabilities).
template <typename T>
__device__ void key_scores(const KeyShared<T>& shared, const AttentionCall<T>& a,
                           const TilePlace& at, int slot, int part, float (&weight)[kBlocks][4],
                           float (&gradient)[kBlocks][4]) {
  const bool drops = a.dropout.threshold > 0;
#pragma unroll
  for (int j = 0; j < kBlocks; ++j) {
    const int begin = part * kHalf + j * 8, query = begin + at.lane % 4 * 2;
    const float2 log_sum = *reinterpret_cast<const float2*>(&shared.log_sum[slot][query]);
    const float2 delta = *reinterpret_cast<const float2*>(&shared.delta[slot][query]);
    const uint32_t kept = drops ? shared.kept_of(at, slot, begin) : ~0u;
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

// Gradients of the keys and values: one thread block per tile of keys.
template <typename T>
__global__ void __launch_bounds__(kTileThreads, 3) tiled_keys(AttentionCall<T> a) {
  auto& shared = block_shared<KeyShared<T>>();
  const TilePlace at(a.starts);
  if (!at.exists()) return;
  const int left = at.length - at.begin;
  const T* from = a.qkv + a.place(at.first + at.begin, 1, at.head);
  start_load(shared.query[1], from, 3 * a.hidden, left);
  start_load(shared.grad[1], from + a.hidden, 3 * a.hidden, left);
  start_queries(shared, a, at, 0, 0);
  Rows16 key, value;
  float grad_key[8][4] = {}, grad_value[8][4] = {};
  for (int query = 0; query < at.length; query += kTile) {
    wait_for_copies();
    __syncthreads();
    if (query == 0) {  // the keys use the memory of the second tile of queries
      key = load_rows(shared.query[1], at.warp, at.lane);
      value = load_rows(shared.grad[1], at.warp, at.lane);
      __syncthreads();
    }
    const int slot = query / kTile % 2;
    if (query + kTile < at.length) start_queries(shared, a, at, query + kTile, 1 - slot);
#pragma unroll
    for (int part = 0; part < 2; ++part) {
      float weight[kBlocks][4], gradient[kBlocks][4];
      product_transposed(key, shared.query[slot], part * kHalf, at.lane, weight);
      product_transposed(value, shared.grad[slot], part * kHalf, at.lane, gradient);
      key_scores(shared, a, at, slot, part, weight, gradient);
      add_product(weight, shared.grad[slot], part * kHalf, at.lane, grad_value);
      add_product(gradient, shared.query[slot], part * kHalf, at.lane, grad_key);
    }
  }
  T* to = a.grad_qkv + a.place(at.first + at.begin, 1, at.head);
  store_rows(grad_key, a.scale, a.scale, to, 3 * a.hidden, left, at.warp, at.lane);
  store_rows(grad_value, 1.0f, 1.0f, to + a.hidden, 3 * a.hidden, left, at.warp, at.lane);
}

template <typename T>
void run_tiles(CudaStream& cuda, const AttentionBackward& a, float* delta) {
  const int64_t rows = a.qkv.extent(0);
  launch("row_products", cuda, blocks_of(rows * a.heads * kEight, kTileThreads), kTileThreads,
         tile_row_products<T>, pointer<T>(a.grad_context), pointer<T>(a.context), rows, a.heads,
         delta);
  const dim3 grid = attention_grid(a.sequence_starts, a.heads, kTile);
  auto call = attention_call<T>(a);
  call.kept_words_of_row = call.dropout.active() ? grid.x : 0;
  const Scratch::Block kept_words =
      cuda.scratch().take(a.heads * rows * call.kept_words_of_row * int64_t{sizeof(uint64_t)});
  call.kept_words = kept_words.as<uint64_t>();
  call.grad_context = pointer<T>(a.grad_context);
  call.delta = delta;
  call.grad_qkv = pointer<T>(a.grad_qkv);
  launch("tiled_attention_backward", cuda, grid, kTileThreads, tiled_queries<T>, call);
  launch("tiled_attention_backward", cuda, grid, kTileThreads, tiled_keys<T>, call);
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
