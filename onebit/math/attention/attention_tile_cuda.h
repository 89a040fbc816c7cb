// Tiles of 64 tokens by one head of 32, 64 or 128 columns in shared memory, and what attention's
// kernels do with them however they multiply (attention_products_cuda.h,
// attention_warpgroup_products_cuda.h). For *_cuda.cu only.
//
// A warp owns 16 rows of a product. With g = lane / 4 and t = lane % 4 a thread holds elements (g,
// 2t), (g, 2t + 1), (g + 8, 2t), (g + 8, 2t + 1) of each 16 x 8 block of it.
#pragma once

#include <cmath>

#include "onebit/math/attention/attention.h"
#include "onebit/math/kernels/kernel_cuda.h"
#include "onebit/math/kernels/tensor_core_cuda.h"

namespace onebit::ops::cuda {

// The arguments of attention's kernels and how a kernel finds its sequence. For *_cuda.cu only.
template <typename T>
struct AttentionCall {
  const T* qkv;  // [rows, 3 * hidden]
  const int32_t* starts;
  int64_t rows, hidden;
  int heads, head_size;
  float scale;  // 1 / sqrt(head_size)
  int window;   // more than the tokens of any sequence if queries see all keys
  // [heads, score_bias_row], with distance 0 in the middle. Null without a bias of scores.
  const float* score_bias;
  int64_t score_bias_row;
  kernels::DropoutPlan dropout;
  T* context;          // forward: written, backward: read
  float* log_sum_exp;  // [heads, rows], may be null in the forward pass
  // [heads, rows, kept_words_of_row]: a word has dropout's bits of a query over a tile of 64 keys.
  // May be null in the forward pass.
  uint64_t* kept_words;
  int64_t kept_words_of_row;
  // The members below are for the backward pass only.
  bool has_kept;  // whether the forward pass has kept the words above
  const T* grad_context;
  const float* delta;  // [heads, rows]: grad_context . context (null for tiles)
  // [heads, rows]: log_sum_exp in powers of two, and delta. Null without tiles.
  const float2* row_sums;
  T* grad_qkv;
  float* bias_sums;  // [blocks, 3 * hidden]: column sums of each block's rows (may be null)

  // Offset in qkv of a head's columns in `row` (part 0: query, 1: key, 2: value).
  __device__ int64_t place(int64_t row, int part, int head) const {
    return (row * 3 + part) * hidden + int64_t{head} * head_size;
  }
  __device__ int64_t mixed_place(int64_t row, int head) const {
    return row * hidden + int64_t{head} * head_size;
  }
  __device__ uint64_t* kept_word(int64_t row, int head, int tile) const {
    return kept_words + (head * rows + row) * kept_words_of_row + tile;
  }
  // What is added to the scaled score of a query and a key so many tokens after it.
  __device__ float bias(int head, int distance) const {
    return score_bias[head * score_bias_row + score_bias_row / 2 + distance];
  }
  // The tokens of a sequence that tokens [begin, end) see, or are seen by.
  __device__ int first_seen(int begin) const { return max(0, begin - window); }
  __device__ int end_of_seen(int end, int length) const { return min(length, end + window); }
  __device__ float kept(uint32_t bits, int bit) const {
    return (bits >> bit & 1u) != 0 ? dropout.scale : 0.0f;
  }
  // Where a block writes the sums of a head's columns (part 0: query, 1: key, 2: value).
  __device__ float* bias_place(int part, int head) const {
    return bias_sums + place(int64_t{blockIdx.z} * gridDim.x + blockIdx.x, part, head);
  }
  // Keep bits of keys [key, key + 32) for the query with this row key. `key` is a multiple of 32.
  __device__ uint32_t keep_bits(uint64_t row_key, int head, int key) const {
    return kernels::dropout_kept_32(dropout.round_keys, dropout.site, row_key,
                                    kernels::first_score_block(static_cast<uint32_t>(head)) +
                                        static_cast<uint32_t>(key) / kernels::kDropoutLanes,
                                    dropout.comparison);
  }
};

inline constexpr int64_t kNoWindow = 1 << 20;  // tokens

// A is Attention or AttentionBackward.
template <typename T, class A>
AttentionCall<T> attention_call(const A& a) {
  const int64_t hidden = a.qkv.extent(1) / 3;
  const int64_t head_size = hidden / a.heads;
  return {.qkv = kernels::cuda::pointer<T>(a.qkv),
          .starts = a.sequence_starts.device.template data<int32_t>(),
          .rows = a.qkv.extent(0),
          .hidden = hidden,
          .heads = static_cast<int>(a.heads),
          .head_size = static_cast<int>(head_size),
          .scale = static_cast<float>(1.0 / std::sqrt(static_cast<double>(head_size))),
          .window = static_cast<int>(a.window < 0 ? kNoWindow : std::min(a.window, kNoWindow)),
          .score_bias = a.score_bias.template data<float>(),
          .score_bias_row = a.score_bias.empty() ? 0 : a.score_bias.extent(1),
          .dropout = kernels::DropoutPlan(a.dropout),
          .context = const_cast<T*>(kernels::cuda::pointer<T>(ConstView(a.context))),
          .log_sum_exp = const_cast<float*>(a.log_sum_exp.template data<float>()),
          .kept_words = const_cast<uint64_t*>(a.kept.template data<uint64_t>()),
          .kept_words_of_row = a.kept.empty() ? 0 : a.kept.extent(2),
          .has_kept = false,
          .grad_context = nullptr,
          .delta = nullptr,
          .row_sums = nullptr,
          .grad_qkv = nullptr,
          .bias_sums = nullptr};
}

// One block per `items` tokens of every head of every sequence: (tiles, heads, sequences).
inline dim3 attention_grid(const SequenceStarts& starts, int64_t heads, int64_t items) {
  return dim3(kernels::cuda::blocks_of(starts.longest(), items), static_cast<unsigned>(heads),
              static_cast<unsigned>(starts.host.size() - 1));
}

// Whether the kernels in tiles can compute on these.
inline bool suits_tiles(const ConstView& qkv, const ConstView& context, int64_t heads) {
  const auto is_whole = [](const ConstView& view) {
    return reinterpret_cast<uintptr_t>(view.raw()) % 16 == 0;
  };
  const int64_t head_size = qkv.extent(1) / 3 / heads;
  return attention_uses_tiles(qkv.dtype(), head_size) && is_whole(qkv) && is_whole(context);
}

inline constexpr int kTile = 64;  // tokens
// For the tiles that a block passes by: one is filled while the other is read.
inline constexpr int kTileSlots = 2;
inline constexpr float kLog2E = 1.44269504089f, kLn2 = 0.693147180560f;

// Starts copying `count` rows of a tile, `stride` elements apart. The tile's other rows are zeroed.
// All `kThreads` threads of the block take part. Addresses within a tile are computed in 32
// bits, which takes a third of the instructions that 64 bits take.
template <int kThreads, class Tile, typename T>
__device__ void start_load(Tile& tile, const T* from, uint32_t stride, int count) {
  constexpr int kPieces = Tile::kHead / 8;
  const int first = static_cast<int>(threadIdx.x) / kPieces,
            column = static_cast<int>(threadIdx.x) % kPieces * 8;
#pragma unroll
  for (int i = 0; i < kTile * kPieces / kThreads; ++i) {
    const int row = first + i * (kThreads / kPieces);
    const bool exists = row < count;
    const uint32_t offset = static_cast<uint32_t>(exists ? row : 0) * stride;
    kernels::cuda::start_copy(tile.address(row, column), from + (offset + column), exists);
  }
}

__device__ inline uint32_t packed(float low, float high, __nv_bfloat16) {
  const __nv_bfloat162 pair = __floats2bfloat162_rn(low, high);
  return reinterpret_cast<const uint32_t&>(pair);
}
__device__ inline uint32_t packed(float low, float high, __half) {
  const __half2 pair = __floats2half2_rn(low, high);
  return reinterpret_cast<const uint32_t&>(pair);
}
// A product as left operands: columns [16 k, 16 k + 16) for each k.
template <typename T, int kBlocks>
__device__ void pack(const float (&product)[kBlocks][4], kernels::cuda::Quad (&left)[kBlocks / 2]) {
#pragma unroll
  for (int k = 0; k < kBlocks / 2; ++k) {
    const auto& low = product[2 * k];
    const auto& high = product[2 * k + 1];
    left[k] = {{packed(low[0], low[1], T{}), packed(low[2], low[3], T{}),
                packed(high[0], high[1], T{}), packed(high[2], high[3], T{})}};
  }
}

// Writes the rows below `count` of this warp's 16, times the factors of rows g and g + 8.
template <typename T, int kBlocks>
__device__ void store_rows(const float (&sum)[kBlocks][4], float first, float second, T* to,
                           int64_t stride, int count, int warp, int lane) {
  const int row = warp * 16 + lane / 4;
#pragma unroll
  for (int j = 0; j < kBlocks; ++j) {
    const int column = j * 8 + lane % 4 * 2;
    if (row < count) {
      *reinterpret_cast<uint32_t*>(to + row * stride + column) =
          packed(sum[j][0] * first, sum[j][1] * first, T{});
    }
    if (row + 8 < count) {
      *reinterpret_cast<uint32_t*>(to + (row + 8) * stride + column) =
          packed(sum[j][2] * second, sum[j][3] * second, T{});
    }
  }
}

// Attention without tensor cores (attention_plain_cuda.cu): for f32, and for head sizes that the
// tiled kernels do not support.
void plain_attention(CudaStream& cuda, const Attention& a);
// Does not read or write the bits of dropout and biases' gradients.
void plain_attention_backward(CudaStream& cuda, const AttentionBackward& a);
// Adds to grad_score_bias, for either kind of kernels.
void score_bias_backward(CudaStream& cuda, const AttentionBackward& a);

}  // namespace onebit::ops::cuda
