// Attention on CUDA devices: the tiled forward pass. The tiled backward pass is in
// attention_backward_cuda.cu, head sizes that tiles do not support are in attention_plain_cuda.cu.
#include <cmath>

#include "onebit/math/attention/attention.h"
#include "onebit/math/attention/attention_place_cuda.h"
#include "onebit/math/attention/attention_products_cuda.h"
#include "onebit/math/attention/attention_scores_cuda.h"
#include "onebit/math/attention/attention_tile_cuda.h"
#include "onebit/math/kernels/approximate_cuda.h"
#include "onebit/math/kernels/block_shared_cuda.h"

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

// Turns products into exp(score - maximum), where the tile has `keys` keys. Rescales the earlier
// sums, which are zero before the first tile.
// kMayBeUnseen: a query may see no key of the tile, all of whose scores are -infinity then.
template <bool kMayBeUnseen, int kHeadBlocks>
__device__ void softmax(float (&score)[8][4], float factor, int keys, bool is_first, int lane,
                        Running& running, float (&context)[kHeadBlocks][4]) {
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
    if constexpr (kMayBeUnseen) best[half] = fmaxf(best[half], -1e30f);  // no NaN below
    const float shrink = approximate_exp2(running.maximum[half] - best[half]);
    running.maximum[half] = best[half];
    running.sum[half] *= shrink;
    if (is_first) continue;
#pragma unroll
    for (int j = 0; j < kHeadBlocks; ++j) {
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

template <typename T, class Products>
struct Shared {
  static constexpr int kRows = kRowsOf<Products>;
  typename Products::template Tile<T> query[Products::kGroups];
  typename Products::template Tile<T> key[kTileSlots], value[kTileSlots];
  RowKeys<kRows> row_keys;
  KeptKeys<kRows> kept;
};

template <typename T, class Products>
__device__ void start_keys(Shared<T, Products>& shared, const AttentionCall<T>& a,
                           const TilePlace& at, int key, int slot) {
  constexpr int kThreads = kThreadsOf<Products>;
  const int count = at.length - key;
  const T* from = a.qkv + a.place(at.first + key, 1, at.head);
  start_load<kThreads>(shared.key[slot], from, 3 * a.hidden, count);
  start_load<kThreads>(shared.value[slot], from + a.hidden, 3 * a.hidden, count);
  end_copy_group();
}

template <typename T, int kHeadBlocks>
__device__ void store(const AttentionCall<T>& a, const TilePlace& at, Running& running,
                      const float (&context)[kHeadBlocks][4]) {
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

// The context of a block's queries: loops over the tiles of keys and prefetches the next one.
template <typename T, class Products, class Scores>
__device__ void forward_rows(const AttentionCall<T>& a) {
  using Memory = Shared<T, Products>;
  auto& shared = block_shared<Memory>();
  const TilePlace at(a.starts, Memory::kRows);
  if (!at.exists()) return;
  for (int group = 0; group < Products::kGroups; ++group) {
    const int begin = at.begin + group * kTile;
    start_load<kThreadsOf<Products>>(shared.query[group],
                                     a.qkv + a.place(at.first + begin, 0, at.head), 3 * a.hidden,
                                     at.length - begin);
  }
  const int first = Scores::first_tile(a, at), end = Scores::template end<Memory::kRows>(a, at);
  start_keys(shared, a, at, first, 0);
  if (a.dropout.threshold > 0) shared.row_keys.load(a, at, at.begin);
  Running running;
  typename Products::template Rows<T> query;
  float context[Products::kHead / 8][4] = {};
  for (int key = first, slot = 0; key < end; key += kTile, slot = 1 - slot) {
    wait_for_copies();
    Products::publish_copies();
    __syncthreads();
    if (key == first) query = Products::rows(shared.query[at.group()], at.warp, at.lane);
    if (key + kTile < end) start_keys(shared, a, at, key + kTile, 1 - slot);
    float score[8][4];
    Products::begin_products();
    Products::start_product(query, shared.key[slot], 0, at.lane, score);
    Products::end_products();
    typename KeptKeys<Memory::kRows>::Mine kept;
    if (a.dropout.threshold > 0) {  // beside the product, where it is asynchronous
      shared.kept.draw(a, shared.row_keys, at, key);
      kept = shared.kept.mine(at);
      if (a.kept_words != nullptr) shared.kept.store(a, at, key);
    }
    Products::finish(score);
    const TilePairs<Scores, true, 8> pairs(at, key);
    pairs.add_bias(a, score);
    pairs.set_unseen(a, -INFINITY, score);
    softmax<Scores::kChangesScores>(score, a.scale * kLog2E, at.length - key, key == first, at.lane,
                                    running, context);
    if (a.dropout.threshold > 0) {
#pragma unroll
      for (int j = 0; j < 8; ++j) {
        for (int i = 0; i < 4; ++i) score[j][i] = kept.keeps(j, i) ? score[j][i] : 0.0f;
      }
    }
    Quad weight[4];
    pack<T>(score, weight);
    Products::begin_products();
    Products::start_adding(weight, shared.value[slot], 0, at.lane, context);
    Products::end_products();
    Products::finish(context);
  }
  store(a, at, running, context);
}

// A thread block owns rows of queries of one head and passes by the tiles of keys and values.
template <typename T, class Products, class Scores>
__global__ void __launch_bounds__(kThreadsOf<Products>, Products::kForwardBlocks)
    tiled_forward(AttentionCall<T> a) {
  if constexpr (Products::kExists) forward_rows<T, Products, Scores>(a);
}

template <typename T, class Products>
void run_tiles(CudaStream& cuda, const Attention& a) {
  using Memory = Shared<T, Products>;
  const dim3 grid = attention_grid(a.sequence_starts, a.heads, Memory::kRows);
  with_scores(a, [&](auto scores) {
    launch_sharing<Memory>("tiled_attention", cuda, grid, kThreadsOf<Products>,
                           tiled_forward<T, Products, decltype(scores)>, attention_call<T>(a));
  });
}

}  // namespace

void attention(Context& context, const Attention& a) {
  const int64_t head_size = a.qkv.extent(1) / 3 / a.heads;
  if (a.qkv.extent(0) * head_size == 0) return;
  CudaStream& cuda = CudaStream::of(context);
  if (!suits_tiles(a.qkv, a.context, a.heads)) return plain_attention(cuda, a);
  with_products(cuda, a.qkv.dtype(), head_size, [&](auto type, auto products) {
    run_tiles<decltype(type), decltype(products)>(cuda, a);
  });
}

}  // namespace onebit::ops::cuda
