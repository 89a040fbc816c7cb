#include "onebit/math/kernels/block_shared_cuda.h"
#include "onebit/math/kernels/column_partials_cuda.h"
#include "onebit/math/kernels/kernel_cuda.h"
#include "onebit/math/kernels/norm_cuda.h"
#include "onebit/math/ops/embedding.h"

namespace onebit::ops::cuda {

using namespace kernels;
using namespace kernels::cuda;

namespace {

// The gradient of a table: sums rows by id, in row order.

// to[ids[row]] += from[row] for all rows, each row of `to` in the order of the rows of `from`. Ids
// outside [0, id_count) are skipped.
struct ScatterById {
  const float* from;   // [rows, columns]
  const int32_t* ids;  // [rows]
  int64_t rows, columns;
  float* to;  // [id_count, columns]  added to
  int64_t id_count;
  int ids_per_block;  // at most 32, fewer if an id has many rows
};

constexpr int kThreads = 256, kWarps = kThreads / kWarp;
constexpr int kChunk = 2048;  // rows processed together
constexpr int kFour = 4;      // columns per thread

__device__ float4 load_four(const float* from, int64_t count) {
  if (count >= kFour && is_aligned(from)) return *reinterpret_cast<const float4*>(from);
  return {from[0], count > 1 ? from[1] : 0.0f, count > 2 ? from[2] : 0.0f,
          count > 3 ? from[3] : 0.0f};
}

__device__ void store_four(float4 value, float* to, int64_t count) {
  to[0] = value.x;
  if (count > 1) to[1] = value.y;
  if (count > 2) to[2] = value.z;
  if (count > 3) to[3] = value.w;
}

// The rows of one id, in order: list [0, count), offsets from `first`. kWhole: all columns come in
// aligned fours, whose loads are then in flight together.
template <bool kWhole>
__device__ void add_rows(const ScatterById& call, int64_t first, const uint16_t* list, int count,
                         int64_t id) {
  for (int64_t column = int64_t{threadIdx.x} * kFour; column < call.columns;
       column += kThreads * kFour) {
    const int64_t left = call.columns - column;
    float* to = call.to + id * call.columns + column;
    float4 sum = load_four(to, left);
#pragma unroll 8
    for (int i = 0; i < count; ++i) {
      const float* from = call.from + (first + list[i]) * call.columns + column;
      const float4 value = kWhole ? *reinterpret_cast<const float4*>(from) : load_four(from, left);
      sum.x += value.x;
      sum.y += value.y;
      sum.z += value.z;
      sum.w += value.w;
    }
    store_four(sum, to, left);
  }
}

struct ScatterLists {
  uint16_t matches[kChunk], list[kChunk];
  uint8_t slots[kChunk];
  int counts[kWarps + 1], listed;
};

// A block owns ids [blockIdx.x * ids_per_block, + ids_per_block) and reads all ids.
template <bool kWhole>
__global__ void scatter(ScatterById call) {
  auto& [matches, list, slots, counts, listed] = block_shared<ScatterLists>();
  const int64_t first_id = int64_t{blockIdx.x} * call.ids_per_block;
  const int warp = static_cast<int>(threadIdx.x) / kWarp,
            lane = static_cast<int>(threadIdx.x) % kWarp;
  const unsigned before = (1u << lane) - 1;
  for (int64_t first = 0; first < call.rows; first += kChunk) {
    int found = 0;  // matches so far: the same number in every thread
    for (int at = 0; at < kChunk && first + at < call.rows; at += kThreads) {
      const int offset = at + static_cast<int>(threadIdx.x);
      const int64_t row = first + offset;
      const int64_t slot = row < call.rows ? call.ids[row] - first_id : -1;
      const bool mine = slot >= 0 && slot < call.ids_per_block && slot + first_id < call.id_count;
      const unsigned ballot = __ballot_sync(kAllLanes, mine);
      __syncthreads();  // the counts of the previous round have been read
      if (lane == 0) counts[warp] = __popc(ballot);
      __syncthreads();
      int place = found + __popc(ballot & before);
      for (int other = 0; other < kWarps; ++other) {
        if (other < warp) place += counts[other];
        found += counts[other];
      }
      if (mine) {
        matches[place] = static_cast<uint16_t>(offset);
        slots[place] = static_cast<uint8_t>(slot);
      }
    }
    __syncthreads();
    for (int slot = 0; found > 0 && slot < call.ids_per_block; ++slot) {
      if (warp == 0) {  // the matches of this id, in order
        int count = 0;
        for (int at = 0; at < found; at += kWarp) {
          const bool mine = at + lane < found && slots[at + lane] == slot;
          const unsigned ballot = __ballot_sync(kAllLanes, mine);
          if (mine) list[count + __popc(ballot & before)] = matches[at + lane];
          count += __popc(ballot);
        }
        if (lane == 0) listed = count;
      }
      __syncthreads();
      if (listed > 0) add_rows<kWhole>(call, first, list, listed, first_id + slot);
      __syncthreads();
    }
  }
}

void scatter_by_id(CudaStream& cuda, const ScatterById& call) {
  if (call.rows * call.columns * call.id_count == 0) return;
  ONEBIT_INVARIANT(call.ids_per_block >= 1 && call.ids_per_block <= kWarp);
  const bool whole = call.columns % kFour == 0 && are_aligned({call.from});
  launch("scatter_by_id", cuda, blocks_of(call.id_count, call.ids_per_block), kThreads,
         whole ? scatter<true> : scatter<false>, call);
}

// The most frequent words of a BERT vocabulary have neighbouring ids. With 32 in a block of
// scatter_by_id one block would add a fifth of all rows. With fewer than 8, blocks that read all
// ids take longer than the largest of them.
constexpr int kWordsPerBlock = 8;

// A table of element type W, with the ids of the rows. Both are null if it is left out.
template <typename W>
struct Table {
  const int32_t* ids;
  const W* values;
  int64_t size;

  __device__ bool has_row_of(int64_t row) const {
    return ids == nullptr || (ids[row] >= 0 && ids[row] < size);
  }
  // Eight columns of the row's id, zeros if the table is left out.
  __device__ Eight load(int64_t row, int64_t column, int64_t hidden) const {
    if (ids == nullptr) return {};
    return load_eight(values + ids[row] * hidden + column, hidden - column);
  }
};

template <typename W>
struct Tables {
  Table<W> word, position, segment;
  int64_t hidden;

  // word + position + segment, or NaN if an id is outside its table.
  __device__ Eight sum(int64_t row, int64_t column) const {
    Eight result;
    if (!word.has_row_of(row) || !position.has_row_of(row) || !segment.has_row_of(row)) {
      for (int i = 0; i < kEight; ++i) result.lane[i] = nanf("");
      return result;
    }
    result = word.load(row, column, hidden);
    const Eight second = position.load(row, column, hidden);
    const Eight third = segment.load(row, column, hidden);
    for (int i = 0; i < kEight; ++i) {
      result.lane[i] = result.lane[i] + second.lane[i] + third.lane[i];
    }
    return result;
  }
};

template <typename W>
Table<W> table_of(const ConstView& table, const ConstView& ids) {
  if (table.empty()) return {};
  return {ids.data<int32_t>(), pointer<W>(table), table.extent(0)};
}

template <typename W, class Arguments>
Tables<W> tables_of(const Arguments& a, int64_t hidden) {
  return {table_of<W>(a.word, a.tokens), table_of<W>(a.position, a.positions),
          table_of<W>(a.segment, a.segments), hidden};
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

struct Norm {
  NormKind kind;
  const float *gamma, *beta;     // gamma is null without a norm, beta without one of its own
  float *mean, *inverse_stddev;  // null in evaluation, the mean for kRms as well
};

// The norm of Embedding or EmbeddingBackward.
template <class Arguments>
Norm norm_of(const Arguments& a, const float* beta) {
  const float* mean = a.kind == NormKind::kLayer ? a.mean.template data<float>() : nullptr;
  return {a.kind, a.gamma.template data<float>(), beta, const_cast<float*>(mean),
          const_cast<float*>(a.inverse_stddev.template data<float>())};
}

// One thread block per row, eight columns per thread.
template <typename T, typename W>
__global__ void forward(Tables<W> tables, Norm norm, float epsilon, DropoutPlan plan, T* y) {
  const int64_t row = blockIdx.x, column = int64_t{threadIdx.x} * kEight;
  const int64_t hidden = tables.hidden, count = hidden - column;
  Eight values;
  if (count > 0) values = tables.sum(row, column);
  if (norm.gamma != nullptr) {
    const RowStatistics found = row_statistics(norm.kind, values, count, hidden, epsilon);
    values = normalised(values, found, load_eight(norm.gamma + column, count),
                        load_beta(norm.beta, column, hidden));
    if (threadIdx.x == 0 && norm.inverse_stddev != nullptr) {
      norm.inverse_stddev[row] = found.inverse_stddev;
      if (norm.mean != nullptr) norm.mean[row] = found.mean;
    }
  }
  if (count > 0) drop_eight(values, plan, row_key_of(plan, row), threadIdx.x);
  store_eight(values, y + row * hidden + column, count);
}

// Sets of partial sums: gamma, beta, then one per segment type.
enum Sum { kGamma, kBeta, kSegments };

// Writes the gradient of the summed embeddings to grad_sum. The sums of segment types stay in
// global memory: every thread adds to its own columns.
template <typename T, typename W>
__global__ void backward(Tables<W> tables, const T* grad_y, Norm norm, DropoutPlan plan,
                         DeviceRowBlocks blocks, int sums, float* grad_sum, float* partials) {
  const int64_t column = int64_t{threadIdx.x} * kEight;
  const int64_t hidden = tables.hidden, count = hidden - column;
  Eight scale;
  if (norm.gamma != nullptr) scale = load_eight(norm.gamma + column, count);
  const int64_t first = int64_t{blockIdx.x} * blocks.rows_per_block;
  const int64_t last = min(blocks.rows, first + blocks.rows_per_block);
  float* sum = partials + int64_t{blockIdx.x} * sums * hidden + column;
  Eight gamma_sum, beta_sum;
  for (int type = kSegments; type < sums; ++type) store_eight(Eight{}, sum + type * hidden, count);
  const MeanByDivision mean_of{hidden};
  for (int64_t row = first; row < last; ++row) {
    const int64_t at = row * hidden + column;
    Eight grad = load_eight(grad_y + at, count);
    if (count > 0) drop_eight(grad, plan, row_key_of(plan, row), threadIdx.x);
    if (norm.gamma != nullptr) {
      const float mean = norm.mean != nullptr ? norm.mean[row] : 0.0f;
      const float inverse = norm.inverse_stddev[row];
      Eight x_hat;
      if (count > 0) x_hat = tables.sum(row, column);
      for (int i = 0; i < kEight; ++i) {
        x_hat.lane[i] = i < count ? (x_hat.lane[i] - mean) * inverse : 0.0f;
      }
      grad =
          norm_gradient(norm.kind, grad, x_hat, scale, row, mean_of, inverse, gamma_sum, beta_sum);
    }
    store_eight(grad, grad_sum + at, count);
    if (tables.segment.ids == nullptr || !tables.segment.has_row_of(row)) continue;
    float* of_type = sum + (kSegments + tables.segment.ids[row]) * hidden;
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
           tables_of<W>(a, hidden), norm_of(a, a.beta.template data<float>()), a.epsilon, plan,
           pointer<T>(a.y));
  });
}

void embedding_backward(Context& context, const EmbeddingBackward& a) {
  const int64_t rows = a.grad_y.extent(0), hidden = a.grad_y.extent(1);
  if (rows * hidden == 0) return;
  const int types = a.segment.empty() ? 0 : static_cast<int>(a.segment.extent(0));
  require(kSegments + types <= DevicePartials::kMaxSums,
          "embedding_backward: {} segment types; CUDA devices support at most {}", types,
          DevicePartials::kMaxSums - kSegments);
  CudaStream& cuda = CudaStream::of(context);
  const DropoutPlan plan(a.dropout);
  const auto grad_sum = cuda.scratch().take(rows * hidden * 4);
  const DeviceRowBlocks blocks(rows);
  DevicePartials partials(cuda, blocks.count, hidden, kSegments + types);
  const unsigned threads = row_threads(hidden, "embedding_backward");
  with_types(a.grad_y.dtype(), a.word.dtype(), [&](auto tag, auto table) {
    using T = decltype(tag);
    using W = decltype(table);
    launch("embedding_backward", cuda, static_cast<unsigned>(blocks.count), threads, backward<T, W>,
           tables_of<W>(a, hidden), pointer<T>(a.grad_y), norm_of(a, nullptr), plan, blocks,
           kSegments + types, grad_sum.template as<float>(), partials.data());
  });
  const float* from = grad_sum.as<float>();
  scatter_by_id(cuda, {from, a.tokens.data<int32_t>(), rows, hidden, a.grad_word.data<float>(),
                       a.word.extent(0), kWordsPerBlock});
  if (!a.position.empty()) {
    scatter_by_id(cuda, {from, a.positions.data<int32_t>(), rows, hidden,
                         a.grad_position.data<float>(), a.position.extent(0), 1});
  }
  std::array<float*, DevicePartials::kMaxSums> to{};
  if (!a.gamma.empty()) to = {a.grad_gamma.data<float>(), a.grad_beta.data<float>()};
  for (int type = 0; type < types; ++type) {
    to[kSegments + type] = a.grad_segment.data<float>() + type * hidden;
  }
  partials.add_to(to);
}

}  // namespace onebit::ops::cuda
