#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "onebit/math/ops/embedding_cpu.cc"
#include "hwy/foreach_target.h"
//
#include <algorithm>
#include <string_view>

#include "onebit/math/kernels/column_partials.h"
#include "onebit/math/kernels/for_parts.h"
#include "onebit/math/kernels/norm_inl.h"
#include "onebit/math/kernels/simd_dropout_inl.h"
#include "onebit/math/ops/embedding.h"

HWY_BEFORE_NAMESPACE();
namespace onebit::ops::HWY_NAMESPACE {

using namespace kernels;
using namespace kernels::HWY_NAMESPACE;

namespace {

// Looks up one row in the three tables, of element type W.
template <typename W, class Arguments>
struct LookUp {
  const Arguments& a;
  int64_t hidden;
  const float* zeros;  // [hidden], the row of a table that is left out

  HWY_INLINE const W* in(const ConstView& table, const ConstView& ids, int64_t row) const {
    if (table.empty()) return reinterpret_cast<const W*>(zeros);
    return table.data<W>() + ids.data<int32_t>()[row] * hidden;
  }
  // Writes word + position + segment to buffer [hidden] and returns its sum.
  HWY_INLINE float sum_row(int64_t row, float* buffer) const {
    const W* word = in(a.word, a.tokens, row);
    const W* position = in(a.position, a.positions, row);
    const W* segment = in(a.segment, a.segments, row);
    Chains total;
    for_lanes_chained(hidden, [&](int64_t i, auto lanes, auto chain) HWY_ATTR {
      const Vector pair = hn::Add(load(word + i, lanes), load(position + i, lanes));
      const Vector value = hn::Add(pair, load(segment + i, lanes));
      store(value, buffer + i, lanes);
      total.chain[chain] = hn::Add(total.chain[chain], value);
    });
    return total.sum();
  }
};

// Calls body(activation tag, table tag).
template <class Body>
HWY_INLINE void with_types(DType activation, DType table, const Body& body) {
  with_float_type(activation, [&](auto tag) HWY_ATTR {
    if (table == DType::kF32) {
      body(tag, float{});
    } else {
      body(tag, tag);
    }
  });
}

// One row, whose looked up sum [hidden] is in the buffer.
template <typename T>
void forward_row(const Embedding& a, const DropoutPlan& plan, int64_t row, float sum,
                 const float* beta, const float* buffer, uint16_t* bits) {
  const int64_t hidden = a.y.extent(1);
  T* y = a.y.data<T>() + row * hidden;
  draw_dropout_bits(plan, row, 0, hidden, bits);
  const auto write = [&](const auto& value_at) HWY_ATTR {
    for_lanes(hidden, [&](int64_t i, auto lanes) HWY_ATTR {
      store(dropped(value_at(i, lanes), plan, bits, i), y + i, lanes);
    });
  };
  if (a.gamma.empty()) {
    return write([&](int64_t i, auto lanes) HWY_ATTR { return load(buffer + i, lanes); });
  }
  const float* gamma = a.gamma.data<float>();
  const RowStatistics statistics = row_statistics(a.kind, buffer, hidden, sum, a.epsilon);
  write([&](int64_t i, auto lanes)
            HWY_ATTR { return normalised(buffer, i, lanes, statistics, gamma, beta); });
  if (a.inverse_stddev.empty()) return;
  a.inverse_stddev.data<float>()[row] = statistics.inverse_stddev;
  if (a.kind == NormKind::kLayer) a.mean.data<float>()[row] = statistics.mean;
}

void embedding(Context& context, const Embedding& a) {
  const int64_t rows = a.y.extent(0), hidden = a.y.extent(1), grain = grain_for(hidden);
  const DropoutPlan plan(a.dropout);
  const RowScratch scratch(context, part_count(context, rows, grain), hidden);
  const ValuesOrZeros zeros(context, {}, hidden), beta(context, a.beta, hidden);
  with_types(a.y.dtype(), a.word.dtype(), [&](auto tag, auto table) HWY_ATTR {
    const LookUp<decltype(table), Embedding> look_up{a, hidden, zeros.data()};
    for_parts(context, rows, grain, [&](int64_t part, int64_t begin, int64_t end) HWY_ATTR {
      float* buffer = scratch.first(part);
      for (int64_t row = begin; row < end; ++row) {
        const float sum = look_up.sum_row(row, buffer);
        forward_row<decltype(tag)>(a, plan, row, sum, beta.data(), buffer, scratch.bits(part));
      }
    });
  });
}

// Sets of partial sums: gamma, beta, then one per segment type. Without segments the sum of all
// rows is in the place of theirs, and is not used.
enum Sum { kGamma, kBeta, kSegments };

// What the backward pass of a row reads and writes besides its arguments.
struct BackwardRow {
  const DropoutPlan& plan;
  const float* mean;  // [rows]
  float* grad_sum;    // [rows, hidden]
  uint16_t* bits;     // of the row's dropout
  NormGradientRow gradient;
};

// Writes the gradient of the summed embeddings of `row` to grad_sum. Adds it to the segment's sum
// [hidden] and the gradients of gamma and beta to theirs.
template <typename T, class LookUpRow>
void backward_row(const EmbeddingBackward& a, const LookUpRow& look_up, int64_t row,
                  BackwardRow& state, float* gamma_sum, float* beta_sum, float* segment_sum) {
  const int64_t hidden = look_up.hidden;
  float* grad_sum = state.grad_sum + row * hidden;
  const T* grad_y = a.grad_y.data<T>() + row * hidden;
  draw_dropout_bits(state.plan, row, 0, hidden, state.bits);
  const auto dropped_grad = [&](int64_t i, auto lanes) HWY_ATTR {
    return dropped(load(grad_y + i, lanes), state.plan, state.bits, i);
  };
  const auto write = [&](const auto& gradient_at) HWY_ATTR {
    for_lanes(hidden, [&](int64_t i, auto lanes) HWY_ATTR {
      const Vector value = gradient_at(i, lanes);
      store(value, grad_sum + i, lanes);
      store(hn::Add(load(segment_sum + i, lanes), value), segment_sum + i, lanes);
    });
  };
  if (a.gamma.empty()) return write(dropped_grad);
  look_up.sum_row(row, grad_sum);  // the sum itself, until overwritten
  const float* inverse_stddev = a.inverse_stddev.data<float>();
  const FromInput<float> source{state.grad_sum, state.mean, inverse_stddev};
  state.gradient.gather(source, row, hidden, a.gamma.data<float>(), gamma_sum, beta_sum,
                        dropped_grad);
  write([&](int64_t i, auto lanes)
            HWY_ATTR { return state.gradient.grad_input(i, lanes, inverse_stddev[row]); });
}

// Writes the gradient of the summed embeddings to grad_sum [rows, hidden] and sums up the gradients
// of gamma, beta and the segment table.
void backward_to_sum(Context& context, const EmbeddingBackward& a, ColumnPartials& sums,
                     const RowBlocks& blocks, float* grad_sum) {
  const int64_t rows = a.grad_y.extent(0), hidden = a.grad_y.extent(1);
  const int64_t grain = grain_for(hidden * blocks.rows_per_block());
  const DropoutPlan plan(a.dropout);
  const RowScratch scratch(context, part_count(context, blocks.count(), grain), hidden);
  const ConstView given_mean = a.kind == NormKind::kLayer ? a.mean : ConstView();
  const ValuesOrZeros zeros(context, {}, hidden), mean(context, given_mean, rows);
  const int32_t* segments = a.segment.empty() ? nullptr : a.segments.data<int32_t>();
  with_types(a.grad_y.dtype(), a.word.dtype(), [&](auto tag, auto table) HWY_ATTR {
    using T = decltype(tag);
    const LookUp<decltype(table), EmbeddingBackward> look_up{a, hidden, zeros.data()};
    for_parts(context, blocks.count(), grain,
              [&](int64_t part, int64_t begin, int64_t end) HWY_ATTR {
                BackwardRow state{
                    plan,
                    mean.data(),
                    grad_sum,
                    scratch.bits(part),
                    {.x_hat = scratch.first(part), .grad = scratch.second(part), .kind = a.kind}};
                for (int64_t block = begin; block < end; ++block) {
                  sums.clear(block);
                  for (int64_t row = blocks.begin(block); row < blocks.end(block); ++row) {
                    const int32_t type = segments == nullptr ? 0 : segments[row];
                    backward_row<T>(a, look_up, row, state, sums.of(kGamma, block),
                                    sums.of(kBeta, block), sums.of(kSegments + type, block));
                  }
                }
              });
  });
}

// Every thread owns some columns of the tables and processes all rows in order. Without a table of
// positions their gradient goes to `unused` [hidden].
void scatter(Context& context, const EmbeddingBackward& a, const float* grad_sum, float* unused) {
  constexpr int64_t kSlice = 16;  // columns: one cache line
  const int64_t rows = a.grad_y.extent(0), hidden = a.grad_y.extent(1);
  const int64_t slices = (hidden + kSlice - 1) / kSlice;
  const int32_t* tokens = a.tokens.data<int32_t>();
  const int32_t* positions = a.position.empty() ? nullptr : a.positions.data<int32_t>();
  for_parts(context, slices, grain_for(rows * kSlice),
            [&](int64_t, int64_t first, int64_t last) HWY_ATTR {
              const int64_t begin = first * kSlice,
                            columns = std::min(last * kSlice, hidden) - begin;
              for (int64_t row = 0; row < rows; ++row) {
                const float* from = grad_sum + row * hidden + begin;
                float* word = a.grad_word.data<float>() + tokens[row] * hidden + begin;
                float* position = unused + begin;
                if (positions != nullptr) {
                  position = a.grad_position.data<float>() + positions[row] * hidden + begin;
                }
                for_lanes(columns, [&](int64_t i, auto lanes) HWY_ATTR {
                  const Vector value = load(from + i, lanes);
                  store(hn::Add(load(word + i, lanes), value), word + i, lanes);
                  store(hn::Add(load(position + i, lanes), value), position + i, lanes);
                });
              }
            });
}

void embedding_backward(Context& context, const EmbeddingBackward& a) {
  const int64_t rows = a.grad_y.extent(0), hidden = a.grad_y.extent(1);
  const int segment_types = a.segment.empty() ? 0 : static_cast<int>(a.segment.extent(0));
  const auto grad_sum = context.scratch().take(rows * hidden * 4);
  const RowBlocks blocks(rows);
  ColumnPartials sums(context, blocks, hidden, kSegments + std::max(segment_types, 1));
  backward_to_sum(context, a, sums, blocks, grad_sum.as<float>());
  const auto unused = context.scratch().take(hidden * 4);
  std::fill_n(unused.as<float>(), hidden, 0.0f);
  scatter(context, a, grad_sum.as<float>(), unused.as<float>());
  if (!a.gamma.empty()) sums.add_to(context, kGamma, a.grad_gamma.data<float>());
  if (!a.grad_beta.empty()) sums.add_to(context, kBeta, a.grad_beta.data<float>());
  for (int type = 0; type < segment_types; ++type) {
    sums.add_to(context, kSegments + type, a.grad_segment.data<float>() + type * hidden);
  }
}

}  // namespace
}  // namespace onebit::ops::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace onebit::ops {

HWY_EXPORT(embedding);
HWY_EXPORT(embedding_backward);

namespace cpu {
namespace {

void check_range(std::string_view name, ConstView ids, ConstView table) {
  const int32_t* id = ids.data<int32_t>();
  for (int64_t row = 0; row < ids.elements(); ++row) {
    require(0 <= id[row] && id[row] < table.extent(0),
            "embedding: {} {} of row {} is outside its table of {}", name, id[row], row,
            table.extent(0));
  }
}

template <class Arguments>
void check_ids(const Arguments& a) {
  check_range("token", a.tokens, a.word);
  if (!a.position.empty()) check_range("position", a.positions, a.position);
  if (!a.segment.empty()) check_range("segment", a.segments, a.segment);
}

}  // namespace

void embedding(Context& context, const Embedding& a) {
  check_ids(a);
  HWY_DYNAMIC_DISPATCH(embedding)(context, a);
}

void embedding_backward(Context& context, const EmbeddingBackward& a) {
  check_ids(a);
  HWY_DYNAMIC_DISPATCH(embedding_backward)(context, a);
}

}  // namespace cpu
}  // namespace onebit::ops
#endif
