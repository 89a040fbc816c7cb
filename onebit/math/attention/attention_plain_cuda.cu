#include "onebit/math/attention/attention_tile_cuda.h"

#include <cmath>

#include "onebit/math/attention/attention_scores_cuda.h"
#include "onebit/math/kernels/block_shared_cuda.h"

namespace onebit::ops::cuda {

using namespace kernels;
using namespace kernels::cuda;

namespace {

constexpr int kWarps = 4;  // tokens per thread block, one warp each
constexpr int kMaxHead = 256, kParts = kMaxHead / kWarp;

// One head of a query and of its gradient, or of a key and a value, for each token of the block.
struct Heads {
  float first[kWarps][kMaxHead], second[kWarps][kMaxHead];
};
struct QueryHeads {
  float query[kWarps][kMaxHead];
};

// What a warp first computes about its token.
struct Token {
  int64_t first;  // first row of its sequence
  int length, position, head, lane;
  bool here;

  template <typename T>
  __device__ explicit Token(const AttentionCall<T>& a)
      : first(a.starts[blockIdx.z]),
        length(a.starts[blockIdx.z + 1] - static_cast<int>(first)),
        position(static_cast<int>(blockIdx.x) * kWarps + static_cast<int>(threadIdx.y)),
        head(static_cast<int>(blockIdx.y)),
        lane(static_cast<int>(threadIdx.x)),
        here(position < length) {}
  __device__ int64_t row() const { return first + position; }
};

template <typename T>
__device__ void load_head(const T* from, int size, int lane, float* to) {
  for (int i = lane; i < size; i += kWarp) to[i] = widen(from[i]);
}

template <typename A, typename B>
__device__ float dot(const A* a, const B* b, int size) {
  float sum = 0;
  for (int i = 0; i < size; ++i) sum = fmaf(widen(a[i]), widen(b[i]), sum);
  return sum;
}

// sum[part] += weight * from[lane + 32 part].
template <typename T>
__device__ void add_scaled(float (&sum)[kParts], float weight, const T* from, int size, int lane) {
#pragma unroll
  for (int part = 0; part < kParts; ++part) {
    const int i = lane + part * kWarp;
    if (i < size) sum[part] = fmaf(weight, widen(from[i]), sum[part]);
  }
}

template <typename T>
__device__ void store_head(const float (&sum)[kParts], float factor, T* to, int size, int lane) {
#pragma unroll
  for (int part = 0; part < kParts; ++part) {
    const int i = lane + part * kWarp;
    if (i < size) to[i] = narrow<T>(sum[part] * factor);
  }
}

// The dropout factor (0 or the scale) for the query in `row` and the key at `key`.
template <typename T>
__device__ float drop_factor(const AttentionCall<T>& a, int64_t row, int head, int key) {
  if (a.dropout.threshold == 0) return 1.0f;
  return a.kept(a.keep_bits(a.dropout.row_keys[row], head, key / kWarp * kWarp), key % kWarp);
}

// The scaled score of a query and a key, from their product.
template <class Scores, typename T>
__device__ float score_of(const AttentionCall<T>& a, int head, int query, int key, float product) {
  const float score = a.scale * product;
  if constexpr (Scores::kChangesScores) {
    if (a.score_bias != nullptr) return score + a.bias(head, key - query);
  }
  return score;
}

// The tokens that a token sees, in steps of a warp from `begin` on.
template <class Scores>
struct SeenTokens {
  int first, begin, end;

  template <typename T>
  __device__ SeenTokens(const AttentionCall<T>& a, const Token& token)
      : first(Scores::kChangesScores ? a.first_seen(token.position) : 0),
        begin(first / kWarp * kWarp),
        end(Scores::kChangesScores ? a.end_of_seen(token.position + 1, token.length)
                                   : token.length) {}
  __device__ bool has(int other) const {
    return (!Scores::kChangesScores || first <= other) && other < end;
  }
};

// One warp per query, one lane per key.
template <class Scores, typename T>
__global__ void forward(AttentionCall<T> a) {
  auto& shared = block_shared<QueryHeads>();
  const Token token(a);
  if (!token.here) return;
  float* query = shared.query[threadIdx.y];
  load_head(a.qkv + a.place(token.row(), 0, token.head), a.head_size, token.lane, query);
  __syncwarp();
  float maximum = -INFINITY, sum = 0, context[kParts] = {};
  const SeenTokens<Scores> seen(a, token);
  for (int begin = seen.begin; begin < seen.end; begin += kWarp) {
    const int key = begin + token.lane;
    const bool exists = seen.has(key);
    float score = -INFINITY;
    if (exists) {
      const T* from = a.qkv + a.place(token.first + key, 1, token.head);
      score = score_of<Scores>(a, token.head, token.position, key, dot(query, from, a.head_size));
    }
    const float larger = fmaxf(maximum, warp_max(score));
    const float shrink = expf(maximum - larger), e = exists ? expf(score - larger) : 0.0f;
    maximum = larger;
    sum = fmaf(sum, shrink, warp_sum(e));
    const float weight = exists ? e * drop_factor(a, token.row(), token.head, key) : 0.0f;
    for (float& part : context) part *= shrink;
    const int keys = min(kWarp, seen.end - begin);
    for (int i = 0; i < keys; ++i) {
      add_scaled(context, __shfl_sync(kAllLanes, weight, i),
                 a.qkv + a.place(token.first + begin + i, 2, token.head), a.head_size, token.lane);
    }
  }
  store_head(context, 1.0f / sum, a.context + a.mixed_place(token.row(), token.head), a.head_size,
             token.lane);
  if (token.lane == 0 && a.log_sum_exp != nullptr) {
    a.log_sum_exp[token.head * a.rows + token.row()] = maximum + logf(sum);
  }
}

// The results for one query-key pair: the dropped probability and the gradient of the score.
struct Pair {
  float dropped, grad_score;
};
// `first`: the first row of the sequence.
template <class Scores, typename T>
__device__ Pair pair_of(const AttentionCall<T>& a, int64_t first, int head, int query, int key,
                        float product, float grad_product) {
  const int64_t query_row = first + query, at = head * a.rows + query_row;
  const float p = expf(score_of<Scores>(a, head, query, key, product) - a.log_sum_exp[at]);
  const float factor = drop_factor(a, query_row, head, key);
  return {p * factor, p * (factor * grad_product - a.delta[at])};
}

// One warp per query, one lane per key.
template <class Scores, typename T>
__global__ void backward_queries(AttentionCall<T> a) {
  auto& shared = block_shared<Heads>();
  const Token token(a);
  if (!token.here) return;
  float *query = shared.first[threadIdx.y], *grad = shared.second[threadIdx.y];
  float sum[kParts] = {};
  load_head(a.qkv + a.place(token.row(), 0, token.head), a.head_size, token.lane, query);
  load_head(a.grad_context + a.mixed_place(token.row(), token.head), a.head_size, token.lane, grad);
  __syncwarp();
  const SeenTokens<Scores> seen(a, token);
  for (int begin = seen.begin; begin < seen.end; begin += kWarp) {
    const int key = begin + token.lane;
    float weight = 0;
    if (seen.has(key)) {
      const int64_t row = token.first + key;
      const float product = dot(query, a.qkv + a.place(row, 1, token.head), a.head_size);
      const float grad_product = dot(grad, a.qkv + a.place(row, 2, token.head), a.head_size);
      weight =
          pair_of<Scores>(a, token.first, token.head, token.position, key, product, grad_product)
              .grad_score;
    }
    const int keys = min(kWarp, seen.end - begin);
    for (int i = 0; i < keys; ++i) {
      add_scaled(sum, __shfl_sync(kAllLanes, weight, i),
                 a.qkv + a.place(token.first + begin + i, 1, token.head), a.head_size, token.lane);
    }
  }
  store_head(sum, a.scale, a.grad_qkv + a.place(token.row(), 0, token.head), a.head_size,
             token.lane);
}

// One warp per key, one lane per query.
template <class Scores, typename T>
__global__ void backward_keys(AttentionCall<T> a) {
  auto& shared = block_shared<Heads>();
  const Token token(a);
  if (!token.here) return;
  float *key = shared.first[threadIdx.y], *value = shared.second[threadIdx.y];
  float grad_key[kParts] = {}, grad_value[kParts] = {};
  load_head(a.qkv + a.place(token.row(), 1, token.head), a.head_size, token.lane, key);
  load_head(a.qkv + a.place(token.row(), 2, token.head), a.head_size, token.lane, value);
  __syncwarp();
  const SeenTokens<Scores> seen(a, token);
  for (int begin = seen.begin; begin < seen.end; begin += kWarp) {
    const int query = begin + token.lane;
    const int64_t row = token.first + query;
    Pair pair{0, 0};
    if (seen.has(query)) {
      const float product = dot(key, a.qkv + a.place(row, 0, token.head), a.head_size);
      const float grad_product =
          dot(value, a.grad_context + a.mixed_place(row, token.head), a.head_size);
      pair =
          pair_of<Scores>(a, token.first, token.head, query, token.position, product, grad_product);
    }
    const int queries = min(kWarp, seen.end - begin);
    for (int i = 0; i < queries; ++i) {
      const int64_t query_row = token.first + begin + i;
      add_scaled(grad_value, __shfl_sync(kAllLanes, pair.dropped, i),
                 a.grad_context + a.mixed_place(query_row, token.head), a.head_size, token.lane);
      add_scaled(grad_key, __shfl_sync(kAllLanes, pair.grad_score, i),
                 a.qkv + a.place(query_row, 0, token.head), a.head_size, token.lane);
    }
  }
  store_head(grad_key, a.scale, a.grad_qkv + a.place(token.row(), 1, token.head), a.head_size,
             token.lane);
  store_head(grad_value, 1.0f, a.grad_qkv + a.place(token.row(), 2, token.head), a.head_size,
             token.lane);
}

template <typename T>
void check_head(const AttentionCall<T>& call) {
  require(call.head_size <= kMaxHead,
          "attention: heads have {} columns; CUDA devices support at most {}", call.head_size,
          kMaxHead);
}

// delta [heads, rows] = grad_context . context. One warp per row and head.
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

// Adds the gradients of all scores of a head and a distance of key and query: one warp for both,
// one lane per query, sequence by sequence.
template <typename T>
__global__ void score_bias_gradients(AttentionCall<T> a, int sequences, int longest,
                                     float* grad_score_bias) {
  const int index = static_cast<int>(blockIdx.x) * kWarps + static_cast<int>(threadIdx.y);
  const int distance = index - (longest - 1), head = static_cast<int>(blockIdx.y);
  if (distance >= longest || abs(distance) > a.window) return;
  float sum = 0;
  for (int sequence = 0; sequence < sequences; ++sequence) {
    const int64_t first = a.starts[sequence];
    const int length = a.starts[sequence + 1] - static_cast<int>(first);
    const int last = min(length, length - distance);
    for (int query = max(0, -distance) + static_cast<int>(threadIdx.x); query < last;
         query += kWarp) {
      const int key = query + distance;
      const T* of_key = a.qkv + a.place(first + key, 1, head);
      const float product = dot(a.qkv + a.place(first + query, 0, head), of_key, a.head_size);
      const float grad_product =
          dot(a.grad_context + a.mixed_place(first + query, head), of_key + a.hidden, a.head_size);
      sum += pair_of<WindowOrBias>(a, first, head, query, key, product, grad_product).grad_score;
    }
  }
  sum = warp_sum(sum);
  if (threadIdx.x > 0) return;
  grad_score_bias[head * a.score_bias_row + a.score_bias_row / 2 + distance] += sum;
}

// The arguments of the backward pass's kernels. Fills delta [heads, rows].
template <typename T>
AttentionCall<T> backward_call(CudaStream& cuda, const AttentionBackward& a, float* delta) {
  const int64_t rows = a.qkv.extent(0), head_size = a.qkv.extent(1) / 3 / a.heads;
  auto call = attention_call<T>(a);
  check_head(call);
  call.grad_context = pointer<T>(a.grad_context);
  call.delta = delta;
  call.grad_qkv = pointer<T>(a.grad_qkv);
  launch("row_products", cuda, blocks_of(rows * a.heads, kWarps), dim3(kWarp, kWarps),
         row_products<T>, call.grad_context, pointer<T>(a.context), rows, a.heads, head_size,
         delta);
  return call;
}

}  // namespace

void plain_attention(CudaStream& cuda, const Attention& a) {
  const dim3 grid = attention_grid(a.sequence_starts, a.heads, kWarps);
  with_device_type(a.qkv.dtype(), [&](auto tag) {
    using T = decltype(tag);
    const auto call = attention_call<T>(a);
    check_head(call);
    with_scores(a, [&](auto scores) {
      launch("plain_attention", cuda, grid, dim3(kWarp, kWarps), forward<decltype(scores), T>,
             call);
    });
  });
}

void plain_attention_backward(CudaStream& cuda, const AttentionBackward& a) {
  const auto delta = cuda.scratch().take(a.heads * a.qkv.extent(0) * int64_t{sizeof(float)});
  const dim3 grid = attention_grid(a.sequence_starts, a.heads, kWarps);
  with_device_type(a.qkv.dtype(), [&](auto tag) {
    using T = decltype(tag);
    const auto call = backward_call<T>(cuda, a, delta.as<float>());
    with_scores(a, [&](auto scores) {
      using Scores = decltype(scores);
      const dim3 block(kWarp, kWarps);
      launch("plain_attention_backward", cuda, grid, block, backward_queries<Scores, T>, call);
      launch("plain_attention_backward", cuda, grid, block, backward_keys<Scores, T>, call);
    });
  });
}

void score_bias_backward(CudaStream& cuda, const AttentionBackward& a) {
  const auto delta = cuda.scratch().take(a.heads * a.qkv.extent(0) * int64_t{sizeof(float)});
  const int longest = static_cast<int>(a.sequence_starts.longest());
  const int sequences = static_cast<int>(a.sequence_starts.host.size()) - 1;
  const dim3 grid(blocks_of(2 * longest - 1, kWarps), static_cast<unsigned>(a.heads));
  with_device_type(a.qkv.dtype(), [&](auto tag) {
    using T = decltype(tag);
    const auto call = backward_call<T>(cuda, a, delta.as<float>());
    launch("score_bias_gradients", cuda, grid, dim3(kWarp, kWarps), score_bias_gradients<T>, call,
           sequences, longest, pointer<float>(a.grad_score_bias));
  });
}

}  // namespace onebit::ops::cuda
