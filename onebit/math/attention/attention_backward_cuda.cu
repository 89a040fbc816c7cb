#include <cmath>

#include "onebit/math/attention/attention.h"
#include "onebit/math/attention/attention_place_cuda.h"
#include "onebit/math/attention/attention_products_cuda.h"
#include "onebit/math/attention/attention_scores_cuda.h"
#include "onebit/math/attention/attention_tile_cuda.h"
#include "onebit/math/kernels/approximate_cuda.h"
#include "onebit/math/kernels/block_shared_cuda.h"
#include "onebit/math/kernels/column_partials_cuda.h"
#include "onebit/math/ops/reduce.h"

namespace onebit::ops::cuda {

using namespace kernels;
using namespace kernels::cuda;

namespace {

constexpr int kHalf = 32;  // half a tile: scores are computed in halves to stay in registers
constexpr int kBlocks = kHalf / 8;

// sums [heads, rows]: log_sum_exp in powers of two, and grad_context . context of one head. A
// thread for eight of its columns.
template <typename T, int kHead>
__global__ void tile_row_sums(const T* grad_context, const T* context, const float* log_sum_exp,
                              int64_t rows, int64_t heads, float2* sums) {
  constexpr int kThreads = kHead / kEight;
  const int64_t index = (int64_t{blockIdx.x} * blockDim.x + threadIdx.x) / kThreads;
  const int64_t row = index / heads, head = index % heads;
  float sum = 0;
  if (row < rows) {
    const int64_t at = index * kHead + threadIdx.x % kThreads * kEight;
    const Eight left = load_whole(grad_context + at), right = load_whole(context + at);
    for (int i = 0; i < kEight; ++i) sum = fmaf(left.lane[i], right.lane[i], sum);
  }
  for (int distance = kThreads / 2; distance > 0; distance /= 2) {
    sum += __shfl_xor_sync(kAllLanes, sum, distance);
  }
  if (row >= rows || threadIdx.x % kThreads != 0) return;
  const int64_t at = head * rows + row;
  sums[at] = {log_sum_exp[at] * kLog2E, sum};
}

template <typename T, class Products>
struct QueryShared {
  static constexpr int kRows = kRowsOf<Products>;
  typename Products::template Tile<T> key[Products::kBackwardTiles];
  typename Products::template Tile<T> value[Products::kBackwardTiles];
  RowKeys<kRows> row_keys;
  KeptKeys<kRows> kept[kTileSlots];

  __device__ auto& sums() { return over<ColumnSums<kRows, Products::kHead>>(key); }
};

template <typename T, class Products>
__device__ void start_keys(QueryShared<T, Products>& shared, const AttentionCall<T>& a,
                           const TilePlace& at, int key, int slot) {
  constexpr int kThreads = kThreadsOf<Products>;
  const T* from = a.qkv + a.place(at.first + key, 1, at.head);
  start_load<kThreads>(shared.key[slot], from, 3 * a.hidden, at.length - key);
  start_load<kThreads>(shared.value[slot], from + a.hidden, 3 * a.hidden, at.length - key);
  const int row = static_cast<int>(threadIdx.x);
  if (a.has_kept && row < kRowsOf<Products>) {
    const bool exists = at.begin + row < at.length;
    const uint64_t* kept =
        a.kept_word(at.first + (exists ? at.begin + row : 0), at.head, key / kTile);
    start_small_copy(shared_address(&shared.kept[slot].word[row]), kept, exists);
  }
  end_copy_group();
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

// Writes the gradients of scores of half a tile of keys, from `key` on, to `gradient` (input:
// gradients of dropped probabilities). `score` has the products, and `kept` the half's bits from
// `block` on.
template <typename T, class Kept>
__device__ void query_scores(const AttentionCall<T>& a, const TilePlace& at, int key,
                             const float2 (&row_sums)[2], const Kept& kept, int block,
                             const float (&score)[kBlocks][4], float (&gradient)[kBlocks][4]) {
#pragma unroll
  for (int j = 0; j < kBlocks; ++j) {
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const float2 sums = row_sums[i / 2];
      const float p = approximate_exp2(fmaf(score[j][i], a.scale * kLog2E, -sums.x));
      const float factor = kept.keeps(block + j, i) ? a.dropout.scale : 0.0f;
      gradient[j][i] = p * fmaf(gradient[j][i], factor, -sums.y);
    }
  }
  if (key + kHalf > at.length) clear_absent(at, key, gradient);
}

// The block's own queries and the gradients of their context, to the tiles set apart for them.
template <typename T, class Products>
__device__ void start_own_queries(QueryShared<T, Products>& shared, const AttentionCall<T>& a,
                                  const TilePlace& at) {
  constexpr int kThreads = kThreadsOf<Products>;
  for (int group = 0; group < Products::kGroups; ++group) {
    const int begin = at.begin + group * kTile, tile = Products::own_tile(group);
    start_load<kThreads>(shared.key[tile], a.qkv + a.place(at.first + begin, 0, at.head),
                         3 * a.hidden, at.length - begin);
    start_load<kThreads>(shared.value[tile],
                         a.grad_context + a.mixed_place(at.first + begin, at.head), a.hidden,
                         at.length - begin);
  }
}

// Gradients of a block's queries.
template <typename T, class Products, class Scores>
__device__ void query_rows(const AttentionCall<T>& a) {
  using Memory = QueryShared<T, Products>;
  auto& shared = block_shared<Memory>();
  const TilePlace at(a.starts, Memory::kRows);
  if (!at.exists()) return write_no_sums<Products::kHead>(a, 0, at.head);
  start_own_queries(shared, a, at);
  const int first = Scores::first_tile(a, at), end = Scores::template end<Memory::kRows>(a, at);
  start_keys(shared, a, at, first, 0);
  const bool draws = a.dropout.threshold > 0 && !a.has_kept;
  if (draws) shared.row_keys.load(a, at, at.begin);
  float2 row_sums[2];
  for (int half = 0; half < 2; ++half) {
    const int query = at.begin + at.warp * 16 + at.lane / 4 + half * 8;
    const bool exists = query < at.length;
    row_sums[half] = exists ? a.row_sums[at.head * a.rows + at.first + query] : float2{INFINITY, 0};
  }
  typename Products::template Rows<T> query, grad;
  float sum[Products::kHead / 8][4] = {};
  for (int key = first, slot = 0; key < end; key += kTile, slot = 1 - slot) {
    wait_for_copies();
    Products::publish_copies();
    __syncthreads();
    if (key == first) {
      const int own = Products::own_tile(at.group());
      query = Products::rows(shared.key[own], at.warp, at.lane);
      grad = Products::rows(shared.value[own], at.warp, at.lane);
      if (Products::kOwnTileIsFreed) __syncthreads();
    }
    if (key + kTile < end) start_keys(shared, a, at, key + kTile, 1 - slot);
    typename KeptKeys<Memory::kRows>::Mine kept;
#pragma unroll
    for (int part = 0; part < 2; ++part) {
      float score[kBlocks][4], grad_score[kBlocks][4];
      Products::begin_products();
      Products::start_product(query, shared.key[slot], part * kHalf, at.lane, score);
      Products::start_product(grad, shared.value[slot], part * kHalf, at.lane, grad_score);
      Products::end_products();
      if (part == 0 && draws) {
        shared.kept[slot].draw(a, shared.row_keys, at, key);
        shared.kept[slot].store(a, at, key);
      }
      if (part == 0 && a.dropout.threshold > 0) kept = shared.kept[slot].mine(at);
      Products::finish(score, grad_score);
      const TilePairs<Scores, true, kBlocks> pairs(at, key + part * kHalf);
      pairs.add_bias(a, score);
      query_scores(a, at, key + part * kHalf, row_sums, kept, part * kBlocks, score, grad_score);
      pairs.set_unseen(a, 0, grad_score);
      Quad left[kBlocks / 2];
      pack<T>(grad_score, left);
      Products::begin_products();
      Products::start_adding(left, shared.key[slot], part * kHalf, at.lane, sum);
      Products::end_products();
      Products::finish(sum);
    }
  }
  store_rows(sum, a.scale, a.scale, a.grad_qkv + a.place(at.first + at.begin, 0, at.head),
             3 * a.hidden, at.length - at.begin, at.warp, at.lane);
  if (a.bias_sums != nullptr) shared.sums().write(sum, a.scale, at, a.bias_place(0, at.head));
}

// The gradient of queries: a thread block owns rows of queries of one head and passes by the tiles
// of keys.
template <typename T, class Products, class Scores>
__global__ void __launch_bounds__(kThreadsOf<Products>, Products::kQueryBlocks)
    tiled_queries(AttentionCall<T> a) {
  if constexpr (Products::kExists) query_rows<T, Products, Scores>(a);
}

template <typename T, class Products>
struct KeyShared {
  static constexpr int kGroups = Products::kGroups;
  typename Products::template Tile<T> query[Products::kBackwardTiles];
  typename Products::template Tile<T> grad[Products::kBackwardTiles];
  alignas(16) float2 row_sums[kTileSlots][kTile];  // of queries, zeros where none exists
  uint64_t kept[kTileSlots][kGroups][kTile];       // a query's bits over each tile of keys

  __device__ auto& sums() { return over<ColumnSums<kRowsOf<Products>, Products::kHead>>(query); }

  // Loads the kept bits of the thread's elements in the blocks of queries from `first` of the tile
  // on. Bit 16 (i % 2) + 8 (i / 2) belongs to element i.
  __device__ void load_kept(const TilePlace& at, int slot, int first, bool drops,
                            uint32_t (&bits)[kBlocks]) const {
    const auto* halves = reinterpret_cast<const uint16_t*>(kept[slot][at.group()]) + at.warp % 4 +
                         4 * (first + at.lane % 4 * 2);
#pragma unroll
    for (int j = 0; j < kBlocks; ++j) {
      const uint32_t pair = halves[32 * j] | uint32_t{halves[32 * j + 4]} << 16;
      bits[j] = drops ? rotated_down(pair, at.lane / 4) : ~0u;
    }
  }
};

template <typename T, class Products>
__device__ void start_queries(KeyShared<T, Products>& shared, const AttentionCall<T>& a,
                              const TilePlace& at, int query, int slot) {
  constexpr int kThreads = kThreadsOf<Products>;
  const int count = at.length - query;
  start_load<kThreads>(shared.query[slot], a.qkv + a.place(at.first + query, 0, at.head),
                       3 * a.hidden, count);
  start_load<kThreads>(shared.grad[slot], a.grad_context + a.mixed_place(at.first + query, at.head),
                       a.hidden, count);
  const int i = static_cast<int>(threadIdx.x) % kTile;
  const int group = static_cast<int>(threadIdx.x) / kTile;
  const int64_t row = at.first + query + (i < count ? i : 0);
  if (group == 0) {
    start_small_copy(shared_address(&shared.row_sums[slot][i]), a.row_sums + at.head * a.rows + row,
                     i < count);
  }
  if (a.dropout.threshold > 0 && group < Products::kGroups) {
    const int tile = at.begin / kTile + group;
    const bool exists = i < count && tile * kTile < at.length;
    start_small_copy(shared_address(&shared.kept[slot][group][i]),
                     a.kept_word(row, at.head, exists ? tile : 0), exists);
  }
  end_copy_group();
}

// For half a tile of queries: writes dropped probabilities to `weight` (input: products) and
// gradients of scores to `gradient` (input: gradients of dropped probabilities).
template <typename T, class Products>
__device__ void key_scores(const KeyShared<T, Products>& shared, const AttentionCall<T>& a,
                           const TilePlace& at, int slot, int part, const uint32_t (&kept)[kBlocks],
                           float (&weight)[kBlocks][4], float (&gradient)[kBlocks][4]) {
#pragma unroll
  for (int j = 0; j < kBlocks; ++j) {
    const int begin = part * kHalf + j * 8, query = begin + at.lane % 4 * 2;
    const float4 sums = *reinterpret_cast<const float4*>(&shared.row_sums[slot][query]);
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const float p =
          approximate_exp2(fmaf(weight[j][i], a.scale * kLog2E, i % 2 == 0 ? -sums.x : -sums.z));
      const float factor = (kept[j] >> (i % 2 * 16 + i / 2 * 8) & 1u) != 0 ? a.dropout.scale : 0.0f;
      weight[j][i] = p * factor;
      gradient[j][i] = p * fmaf(gradient[j][i], factor, i % 2 == 0 ? -sums.y : -sums.w);
    }
  }
}

// The block's own keys and values, to the tiles set apart for them.
template <typename T, class Products>
__device__ void start_own_keys(KeyShared<T, Products>& shared, const AttentionCall<T>& a,
                               const TilePlace& at) {
  constexpr int kThreads = kThreadsOf<Products>;
  for (int group = 0; group < Products::kGroups; ++group) {
    const int begin = at.begin + group * kTile, tile = Products::own_tile(group);
    const T* from = a.qkv + a.place(at.first + begin, 1, at.head);
    start_load<kThreads>(shared.query[tile], from, 3 * a.hidden, at.length - begin);
    start_load<kThreads>(shared.grad[tile], from + a.hidden, 3 * a.hidden, at.length - begin);
  }
}

// Gradients of a block's keys and values.
template <typename T, class Products, class Scores>
__device__ void key_rows(const AttentionCall<T>& a) {
  auto& shared = block_shared<KeyShared<T, Products>>();
  const TilePlace at(a.starts, kRowsOf<Products>);
  if (!at.exists()) {
    write_no_sums<Products::kHead>(a, 1, at.head);
    return write_no_sums<Products::kHead>(a, 2, at.head);
  }
  start_own_keys(shared, a, at);
  const int first = Scores::first_tile(a, at), end = Scores::template end<kRowsOf<Products>>(a, at);
  start_queries(shared, a, at, first, 0);
  typename Products::template Rows<T> key, value;
  constexpr int kHeadBlocks = Products::kHead / 8;
  float grad_key[kHeadBlocks][4] = {}, grad_value[kHeadBlocks][4] = {};
  for (int query = first, slot = 0; query < end; query += kTile, slot = 1 - slot) {
    wait_for_copies();
    Products::publish_copies();
    __syncthreads();
    if (query == first) {
      const int own = Products::own_tile(at.group());
      key = Products::rows(shared.query[own], at.warp, at.lane);
      value = Products::rows(shared.grad[own], at.warp, at.lane);
      if (Products::kOwnTileIsFreed) __syncthreads();
    }
    if (query + kTile < end) start_queries(shared, a, at, query + kTile, 1 - slot);
#pragma unroll
    for (int part = 0; part < 2; ++part) {
      float weight[kBlocks][4], gradient[kBlocks][4];
      Products::begin_products();
      Products::start_product(key, shared.query[slot], part * kHalf, at.lane, weight);
      Products::start_product(value, shared.grad[slot], part * kHalf, at.lane, gradient);
      Products::end_products();
      uint32_t kept[kBlocks];
      shared.load_kept(at, slot, part * kHalf, a.dropout.threshold > 0, kept);
      Products::finish(weight, gradient);
      const TilePairs<Scores, false, kBlocks> pairs(at, query + part * kHalf);
      pairs.add_bias(a, weight);
      key_scores(shared, a, at, slot, part, kept, weight, gradient);
      pairs.set_unseen(a, 0, weight);
      pairs.set_unseen(a, 0, gradient);
      Quad left[kBlocks / 2], grad_left[kBlocks / 2];
      pack<T>(weight, left);
      pack<T>(gradient, grad_left);
      Products::begin_products();
      Products::start_adding(left, shared.grad[slot], part * kHalf, at.lane, grad_value);
      Products::start_adding(grad_left, shared.query[slot], part * kHalf, at.lane, grad_key);
      Products::end_products();
      Products::finish(grad_value, grad_key);
    }
  }
  T* to = a.grad_qkv + a.place(at.first + at.begin, 1, at.head);
  const int left = at.length - at.begin;
  store_rows(grad_key, a.scale, a.scale, to, 3 * a.hidden, left, at.warp, at.lane);
  store_rows(grad_value, 1.0f, 1.0f, to + a.hidden, 3 * a.hidden, left, at.warp, at.lane);
  if (a.bias_sums == nullptr) return;
  shared.sums().write(grad_key, a.scale, at, a.bias_place(1, at.head));
  shared.sums().write(grad_value, 1.0f, at, a.bias_place(2, at.head));
}

// The gradients of keys and values: a thread block owns rows of keys of one head and passes by the
// tiles of queries.
template <typename T, class Products, class Scores>
__global__ void __launch_bounds__(kThreadsOf<Products>, Products::kKeyBlocks)
    tiled_keys(AttentionCall<T> a) {
  if constexpr (Products::kExists) key_rows<T, Products, Scores>(a);
}

template <typename T, class Products>
void run_tiles(CudaStream& cuda, const AttentionBackward& a) {
  constexpr int kSumThreads = 128;
  const int64_t rows = a.qkv.extent(0);
  const Scratch::Block sums = cuda.scratch().take(a.heads * rows * int64_t{sizeof(float2)});
  launch("tile_row_sums", cuda, blocks_of(rows * a.heads * (Products::kHead / kEight), kSumThreads),
         kSumThreads, tile_row_sums<T, Products::kHead>, pointer<T>(a.grad_context),
         pointer<T>(a.context), a.log_sum_exp.data<float>(), rows, a.heads, sums.as<float2>());
  auto call = attention_call<T>(a);
  call.row_sums = sums.as<float2>();
  call.grad_context = pointer<T>(a.grad_context);
  call.grad_qkv = pointer<T>(a.grad_qkv);
  call.has_kept = call.dropout.active() && call.kept_words != nullptr;
  // Bits that the forward pass has not kept are drawn once, by the queries' kernel.
  const bool draws = call.dropout.active() && !call.has_kept;
  if (draws) call.kept_words_of_row = attention_grid(a.sequence_starts, a.heads, kTile).x;
  const Scratch::Block drawn = cuda.scratch().take(
      draws ? a.heads * rows * call.kept_words_of_row * int64_t{sizeof(uint64_t)} : 0);
  if (draws) call.kept_words = drawn.as<uint64_t>();
  const dim3 grid = attention_grid(a.sequence_starts, a.heads, kRowsOf<Products>);
  const bool sums_bias = !a.grad_bias.empty();
  DevicePartials bias_sums(cuda, sums_bias ? int64_t{grid.x} * grid.z : 0, a.qkv.extent(1), 1);
  if (sums_bias) call.bias_sums = bias_sums.data();
  with_scores(a, [&](auto scores) {
    using Scores = decltype(scores);
    launch_sharing<QueryShared<T, Products>>("tiled_queries", cuda, grid, kThreadsOf<Products>,
                                             tiled_queries<T, Products, Scores>, call);
    launch_sharing<KeyShared<T, Products>>("tiled_keys", cuda, grid, kThreadsOf<Products>,
                                           tiled_keys<T, Products, Scores>, call);
  });
  if (sums_bias) bias_sums.add_to({pointer<float>(a.grad_bias)});
}

}  // namespace

void attention_backward(Context& context, const AttentionBackward& a) {
  const int64_t rows = a.qkv.extent(0), head_size = a.qkv.extent(1) / 3 / a.heads;
  if (rows * head_size == 0) return;
  CudaStream& cuda = CudaStream::of(context);
  if (!a.grad_score_bias.empty()) score_bias_backward(cuda, a);
  if (suits_tiles(a.qkv, a.grad_context, a.heads) && suits_tiles(a.qkv, a.context, a.heads)) {
    return with_products(cuda, a.qkv.dtype(), head_size, [&](auto type, auto products) {
      run_tiles<decltype(type), decltype(products)>(cuda, a);
    });
  }
  plain_attention_backward(cuda, a);
  if (!a.grad_bias.empty()) column_sum(context, {.x = a.grad_qkv, .sum = a.grad_bias});
}

}  // namespace onebit::ops::cuda
