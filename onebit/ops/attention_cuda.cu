// Attention on CUDA devices: the tiled forward pass. The tiled backward pass is in
// attention_backward_cuda.cu; head sizes that tiles do not support are in attention_plain_cuda.cu.
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

// The running maximum and sum of a warp's rows g and g + 8, in powers of two.
struct Running {
  float maximum[2] = {-INFINITY, -INFINITY}, sum[2] = {0, 0};
};

__device__ float quad_max(float value) {
  value = fmaxf(value, __shfl_xor_sync(kAllLanes, value, 1));
  return fmaxf(value, __shfl_xor_sync(kAllLanes, value, 2));
}
__device__ float quad_sum(float value) {
  value += __shfl_xor_sync(kAllLanes, value, 1);
  return value + __shfl_xor_sync(kAllLanes, value, 2);
}

// Turns products into exp(score - maximum); the tile has `keys` keys. Rescales the earlier sums,
// which are zero before the first tile.
__device__ void softmax(float (&score)[8][4], float factor, int keys, bool is_first, int lane,
                        Running& running, float (&context)[8][4]) {
  if (keys < kTile) {
#pragma unroll
    for (int j = 0; j < 8; ++j) {
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        const bool exists = j * 8 + lane % 4 * 2 + i % 2 < keys;
        if (!exists) score[j][i] = -INFINITY;
      }
    }
  }
  float best[2] = {-INFINITY, -INFINITY};
#pragma unroll
  for (int j = 0; j < 8; ++j) {
#pragma unroll
    for (int i = 0; i < 4; ++i) best[i / 2] = fmaxf(best[i / 2], score[j][i]);
  }
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    best[half] = fmaxf(running.maximum[half], quad_max(best[half]) * factor);
    const float shrink = approximate_exp2(running.maximum[half] - best[half]);
    running.maximum[half] = best[half];
    running.sum[half] *= shrink;
    if (is_first) continue;
#pragma unroll
    for (int j = 0; j < 8; ++j) {
      context[j][2 * half] *= shrink;
      context[j][2 * half + 1] *= shrink;
    }
  }
#pragma unroll
  for (int j = 0; j < 8; ++j) {
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      score[j][i] = approximate_exp2(fmaf(score[j][i], factor, -best[i / 2]));
      running.sum[i / 2] += score[j][i];
    }
  }
}

template <typename T>
struct Shared {
  Tile<T> query, key[2], value[2];
  TileKeys row_keys;
  QueryMask mask;
};

template <typename T>
__device__ void start_keys(Shared<T>& shared, const AttentionCall<T>& a, const TilePlace& at,
                           int key) {
  const int count = at.length - key, slot = key / kTile % 2;
  const T* from = a.qkv + a.place(at.first + key, 1, at.head);
  start_load(shared.key[slot], from, 3 * a.hidden, count);
  start_load(shared.value[slot], from + a.hidden, 3 * a.hidden, count);
  end_copy_group();
}

template <typename T>
__device__ void store(const AttentionCall<T>& a, const TilePlace& at, Running& running,
                      const float (&context)[8][4]) {
  for (float& sum : running.sum) sum = quad_sum(sum);
  // Kept probabilities are scaled here, once a row.
  store_rows(context, a.dropout.scale / running.sum[0], a.dropout.scale / running.sum[1],
             a.context + a.mixed_place(at.first + at.begin, at.head), a.hidden,
             at.length - at.begin, at.warp, at.lane);
  if (a.log_sum_exp == nullptr || at.lane % 4 != 0) return;
  for (int half = 0; half < 2; ++half) {
    const int query = at.begin + at.warp * 16 + at.lane / 4 + half * 8;
    if (query >= at.length) continue;
    a.log_sum_exp[at.head * a.rows + at.first + query] =
        fmaf(running.maximum[half], kLn2, logf(running.sum[half]));
  }
}

// One thread block per tile of queries: loops over the tiles of keys and prefetches the next one.
template <typename T>
__global__ void __launch_bounds__(kTileThreads, 4) tiled_forward(AttentionCall<T> a) {
  auto& shared = block_shared<Shared<T>>();
  const TilePlace at(a.starts);
  if (!at.exists()) return;
  start_load(shared.query, a.qkv + a.place(at.first + at.begin, 0, at.head), 3 * a.hidden,
             at.length - at.begin);
  start_keys(shared, a, at, 0);
  if (a.dropout.threshold > 0) shared.row_keys.load(a, at, at.begin);
  Running running;
  Rows16 query;
  float context[8][4] = {};
  for (int key = 0; key < at.length; key += kTile) {
    wait_for_copies();
    __syncthreads();
    if (key == 0) query = load_rows(shared.query, at.warp, at.lane);
    if (key + kTile < at.length) start_keys(shared, a, at, key + kTile);
    const int slot = key / kTile % 2;
    float score[8][4];
    product_transposed(query, shared.key[slot], 0, at.lane, score);
    softmax(score, a.scale * kLog2E, at.length - key, key == 0, at.lane, running, context);
    if (a.dropout.threshold > 0) {
      const QueryMask::Mine mask = shared.mask.draw(a, shared.row_keys, at, key);
#pragma unroll
      for (int j = 0; j < 8; ++j) {
        for (int i = 0; i < 4; ++i) score[j][i] = mask.keeps(j, i) ? score[j][i] : 0.0f;
      }
    }
    add_product(score, shared.value[slot], 0, at.lane, context);
  }
  store(a, at, running, context);
}

template <typename T>
void run_tiles(CudaStream& cuda, const Attention& a) {
  const dim3 grid = attention_grid(a.sequence_starts, a.heads, kTile);
  launch("tiled_attention", cuda, grid, kTileThreads, tiled_forward<T>, attention_call<T>(a));
}

}  // namespace

void attention(Context& context, const Attention& a) {
  const int64_t head_size = a.qkv.extent(1) / 3 / a.heads;
  if (a.qkv.extent(0) * head_size == 0) return;
  CudaStream& cuda = CudaStream::of(context);
  if (!suits_tiles(a.qkv, a.context, a.heads)) return plain_attention(cuda, a);
  if (a.qkv.dtype() == DType::kBF16) return run_tiles<__nv_bfloat16>(cuda, a);
  run_tiles<__half>(cuda, a);
}

}  // namespace onebit::ops::cuda
