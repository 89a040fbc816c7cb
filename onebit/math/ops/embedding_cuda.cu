#include "onebit/math/kernels/column_partials_cuda.h"
#include "onebit/math/kernels/norm_cuda.h"
#include "onebit/math/kernels/row_scatter_cuda.h"
#include "onebit/math/ops/embedding.h"

namespace onebit::ops::cuda {

using namespace kernels;
using namespace kernels::cuda;

namespace {

// The most frequent words of a BERT vocabulary have neighbouring ids. With 32 in a block of
// scatter_by_id one block would add a fifth of all rows. With fewer than 8, blocks that read all
// ids take longer than the largest of them.
constexpr int kWordsPerBlock = 8;

// The three tables, of element type W.
template <typename W>
struct Tables {
  const int32_t *tokens, *positions, *segments;
  const W *word, *position, *segment;
  int64_t words, position_count, segment_count, hidden;

  // word + position + segment, or NaN if an id is outside its table.
  __device__ Eight sum(int64_t row, int64_t column) const {
    const int64_t token = tokens[row], place = positions[row], type = segments[row];
    const int64_t count = hidden - column;
    Eight result;
    const bool inside = token >= 0 && token < words && place >= 0 && place < position_count &&
                        type >= 0 && type < segment_count;
    if (!inside) {
      for (int i = 0; i < kEight; ++i) result.lane[i] = nanf("");
      return result;
    }
    result = load_eight(word + token * hidden + column, count);
    const Eight second = load_eight(position + place * hidden + column, count);
    const Eight third = load_eight(segment + type * hidden + column, count);
    for (int i = 0; i < kEight; ++i) {
      result.lane[i] = result.lane[i] + second.lane[i] + third.lane[i];
    }
    return result;
  }
};

template <typename W, class Arguments>
Tables<W> tables_of(const Arguments& a, int64_t hidden) {
  return {a.tokens.template data<int32_t>(),
          a.positions.template data<int32_t>(),
          a.segments.template data<int32_t>(),
          pointer<W>(a.word),
          pointer<W>(a.position),
          pointer<W>(a.segment),
          a.word.extent(0),
          a.position.extent(0),
          a.segment.extent(0),
          hidden};
}

// Calls body(activation tag, table tag).
template <class Body>
void with_types(DType activation, DType table, const Body& body) {
  with_device_type(activation, [&](auto tag) {
    if (table == DType::kF32) {
      body(tag, float{});
    } else {
      body(tag, tag);
    }
  });
}

struct Statistics {
  float *mean, *inverse_stddev;
};

// One thread block per row, eight columns per thread.
template <typename T, typename W>
__global__ void forward(Tables<W> tables, const float* gamma, const float* beta, float epsilon,
                        DropoutPlan plan, T* y, Statistics statistics) {
  const int64_t row = blockIdx.x, column = int64_t{threadIdx.x} * kEight;
  const int64_t hidden = tables.hidden, count = hidden - column;
  Eight values;
  if (count > 0) values = tables.sum(row, column);
  const RowStatistics found = row_statistics(values, count, hidden, epsilon);
  Eight result = normalised(values, found, load_eight(gamma + column, count),
                            load_eight(beta + column, count));
  if (count > 0) drop_eight(result, plan, row_key_of(plan, row), threadIdx.x);
  store_eight(result, y + row * hidden + column, count);
  if (threadIdx.x == 0 && statistics.mean != nullptr) {
    statistics.mean[row] = found.mean;
    statistics.inverse_stddev[row] = found.inverse_stddev;
  }
}

// Sets of partial sums: gamma, beta, then one per segment type.
enum Sum { kGamma, kBeta, kSegments };

// Writes the gradient of the summed embeddings to grad_sum. The sums of segment types stay in
// global memory: every thread adds to its own columns.
template <typename T, typename W>
__global__ void backward(Tables<W> tables, const T* grad_y, const float* gamma,
                         Statistics statistics, DropoutPlan plan, DeviceRowBlocks blocks, int sums,
                         float* grad_sum, float* partials) {
  const int64_t column = int64_t{threadIdx.x} * kEight;
  const int64_t hidden = tables.hidden, count = hidden - column;
  const Eight scale = load_eight(gamma + column, count);
  const int64_t first = int64_t{blockIdx.x} * blocks.rows_per_block;
  const int64_t last = min(blocks.rows, first + blocks.rows_per_block);
  float* sum = partials + int64_t{blockIdx.x} * sums * hidden + column;
  Eight gamma_sum, beta_sum;
  for (int type = kSegments; type < sums; ++type) store_eight(Eight{}, sum + type * hidden, count);
  const MeanByDivision mean_of{hidden};
  for (int64_t row = first; row < last; ++row) {
    const int64_t at = row * hidden + column;
    const float mean = statistics.mean[row], inverse = statistics.inverse_stddev[row];
    Eight x_hat, grad = load_eight(grad_y + at, count);
    if (count > 0) {
      x_hat = tables.sum(row, column);
      drop_eight(grad, plan, row_key_of(plan, row), threadIdx.x);
    }
    for (int i = 0; i < kEight; ++i) {
      x_hat.lane[i] = i < count ? (x_hat.lane[i] - mean) * inverse : 0.0f;
    }
    grad = norm_gradient(grad, x_hat, scale, row, mean_of, inverse, gamma_sum, beta_sum);
    store_eight(grad, grad_sum + at, count);
    const int64_t type = tables.segments[row];
    if (type < 0 || type >= tables.segment_count) continue;
    float* of_type = sum + (kSegments + type) * hidden;
    Eight total = load_eight(of_type, count);
    for (int i = 0; i < kEight; ++i) total.lane[i] += grad.lane[i];
    store_eight(total, of_type, count);
  }
  store_eight(gamma_sum, sum + kGamma * hidden, count);
  store_eight(beta_sum, sum + kBeta * hidden, count);
}

}  // namespace

void embedding(Context& context, const Embedding& a) {
  const int64_t rows = a.y.extent(0), hidden = a.y.extent(1);
  if (rows * hidden == 0) return;
  CudaStream& cuda = CudaStream::of(context);
  const DropoutPlan plan(a.dropout);
  const unsigned threads = row_threads(hidden, "embedding");
  with_types(a.y.dtype(), a.word.dtype(), [&](auto tag, auto table) {
    using T = decltype(tag);
    using W = decltype(table);
    launch("embedding", cuda, static_cast<unsigned>(rows), threads, forward<T, W>,
           tables_of<W>(a, hidden), a.gamma.template data<float>(), a.beta.template data<float>(),
           a.epsilon, plan, pointer<T>(a.y),
           {a.mean.template data<float>(), a.inverse_stddev.template data<float>()});
  });
}

void embedding_backward(Context& context, const EmbeddingBackward& a) {
  const int64_t rows = a.grad_y.extent(0), hidden = a.grad_y.extent(1);
  if (rows * hidden == 0) return;
  const int types = static_cast<int>(a.segment.extent(0));
  require(kSegments + types <= DevicePartials::kMaxSums,
          "embedding_backward: {} segment types; CUDA devices support at most {}", types,
          DevicePartials::kMaxSums - kSegments);
  CudaStream& cuda = CudaStream::of(context);
  const DropoutPlan plan(a.dropout);
  const auto grad_sum = cuda.scratch().take(rows * hidden * 4);
  const DeviceRowBlocks blocks(rows);
  DevicePartials partials(cuda, blocks.count, hidden, kSegments + types);
  const Statistics statistics{const_cast<float*>(a.mean.data<float>()),
                              const_cast<float*>(a.inverse_stddev.data<float>())};
  const unsigned threads = row_threads(hidden, "embedding_backward");
  with_types(a.grad_y.dtype(), a.word.dtype(), [&](auto tag, auto table) {
    using T = decltype(tag);
    using W = decltype(table);
    launch("embedding_backward", cuda, static_cast<unsigned>(blocks.count), threads, backward<T, W>,
           tables_of<W>(a, hidden), pointer<T>(a.grad_y), a.gamma.template data<float>(),
           statistics, plan, blocks, kSegments + types, grad_sum.template as<float>(),
           partials.data());
  });
  const float* from = grad_sum.as<float>();
  scatter_by_id(cuda, {from, a.tokens.data<int32_t>(), rows, hidden, a.grad_word.data<float>(),
                       a.word.extent(0), kWordsPerBlock});
  scatter_by_id(cuda, {from, a.positions.data<int32_t>(), rows, hidden,
                       a.grad_position.data<float>(), a.position.extent(0), 1});
  std::array<float*, DevicePartials::kMaxSums> to{a.grad_gamma.data<float>(),
                                                  a.grad_beta.data<float>()};
  for (int type = 0; type < types; ++type) {
    to[kSegments + type] = a.grad_segment.data<float>() + type * hidden;
  }
  partials.add_to(to);
}

}  // namespace onebit::ops::cuda
