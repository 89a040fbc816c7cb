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

  HWY_INLINE const W* in(const ConstView& table, const ConstView& ids, int64_t row) const {
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

void embedding(Context& context, const Embedding& a) {
  const int64_t rows = a.y.extent(0), hidden = a.y.extent(1), grain = grain_for(hidden);
  const DropoutPlan plan(a.dropout);
  const RowScratch scratch(context, part_count(context, rows, grain), hidden);
  const float *gamma = a.gamma.data<float>(), *beta = a.beta.data<float>();
  with_types(a.y.dtype(), a.word.dtype(), [&](auto tag, auto table) HWY_ATTR {
    using T = decltype(tag);
    const LookUp<decltype(table), Embedding> look_up{a, hidden};
    for_parts(context, rows, grain, [&](int64_t part, int64_t begin, int64_t end) HWY_ATTR {
      float* buffer = scratch.first(part);
      uint16_t* bits = scratch.bits(part);
      for (int64_t row = begin; row < end; ++row) {
        const float sum = look_up.sum_row(row, buffer);
        const RowStatistics statistics = row_statistics(buffer, hidden, sum, a.epsilon);
        draw_dropout_bits(plan, row, 0, hidden, bits);
        T* y = a.y.template data<T>() + row * hidden;
        for_lanes(hidden, [&](int64_t i, auto lanes) HWY_ATTR {
          const Vector value = normalised(buffer, i, lanes, statistics, gamma, beta);
          store(dropped(value, plan, bits, i), y + i, lanes);
        });
        if (!a.mean.empty()) {
          a.mean.data<float>()[row] = statistics.mean;
          a.inverse_stddev.data<float>()[row] = statistics.inverse_stddev;
        }
      }
    });
  });
}

// Sets of partial sums: gamma, beta, then one per segment type.
enum Sum { kGamma, kBeta, kSegments };

// Writes the gradient of the summed embeddings to grad_sum [rows, hidden] and sums up the gradients
// of gamma, beta and the segment table.
void backward_to_sum(Context& context, const EmbeddingBackward& a, ColumnPartials& sums,
                     const RowBlocks& blocks, float* grad_sum) {
  const int64_t hidden = a.grad_y.extent(1);
  const int64_t grain = grain_for(hidden * blocks.rows_per_block());
  const DropoutPlan plan(a.dropout);
  const RowScratch scratch(context, part_count(context, blocks.count(), grain), hidden);
  const float *gamma = a.gamma.data<float>(), *inverse_stddev = a.inverse_stddev.data<float>();
  with_types(a.grad_y.dtype(), a.word.dtype(), [&](auto tag, auto table) HWY_ATTR {
    using T = decltype(tag);
    const LookUp<decltype(table), EmbeddingBackward> look_up{a, hidden};
    for_parts(
        context, blocks.count(), grain, [&](int64_t part, int64_t begin, int64_t end) HWY_ATTR {
          uint16_t* bits = scratch.bits(part);
          NormGradientRow gradient{.x_hat = scratch.first(part), .grad = scratch.second(part)};
          for (int64_t block = begin; block < end; ++block) {
            sums.clear(block);
            for (int64_t row = blocks.begin(block); row < blocks.end(block); ++row) {
              float* looked_up = grad_sum + row * hidden;  // the sum itself, until overwritten
              look_up.sum_row(row, looked_up);
              draw_dropout_bits(plan, row, 0, hidden, bits);
              const FromInput<float> source{grad_sum, a.mean.data<float>(), inverse_stddev};
              const T* grad_y = a.grad_y.template data<T>() + row * hidden;
              gradient.gather(source, row, hidden, gamma, sums.of(kGamma, block),
                              sums.of(kBeta, block), [&](int64_t i, auto lanes) HWY_ATTR {
                                return dropped(load(grad_y + i, lanes), plan, bits, i);
                              });
              float* segment = sums.of(kSegments + a.segments.data<int32_t>()[row], block);
              for_lanes(hidden, [&](int64_t i, auto lanes) HWY_ATTR {
                const Vector value = gradient.grad_input(i, lanes, inverse_stddev[row]);
                store(value, looked_up + i, lanes);
                store(hn::Add(load(segment + i, lanes), value), segment + i, lanes);
              });
            }
          }
        });
  });
}

// Every thread owns some columns of the tables and processes all rows in order.
void scatter(Context& context, const EmbeddingBackward& a, const float* grad_sum) {
  constexpr int64_t kSlice = 16;  // columns: one cache line
  const int64_t rows = a.grad_y.extent(0), hidden = a.grad_y.extent(1);
  const int64_t slices = (hidden + kSlice - 1) / kSlice;
  const int32_t *tokens = a.tokens.data<int32_t>(), *positions = a.positions.data<int32_t>();
  for_parts(context, slices, grain_for(rows * kSlice),
            [&](int64_t, int64_t first, int64_t last) HWY_ATTR {
              const int64_t begin = first * kSlice,
                            columns = std::min(last * kSlice, hidden) - begin;
              for (int64_t row = 0; row < rows; ++row) {
                const float* from = grad_sum + row * hidden + begin;
                float* word = a.grad_word.data<float>() + tokens[row] * hidden + begin;
                float* position = a.grad_position.data<float>() + positions[row] * hidden + begin;
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
  const int segment_types = static_cast<int>(a.segment.extent(0));
  const auto grad_sum = context.scratch().take(rows * hidden * 4);
  const RowBlocks blocks(rows);
  ColumnPartials sums(context, blocks, hidden, kSegments + segment_types);
  backward_to_sum(context, a, sums, blocks, grad_sum.as<float>());
  scatter(context, a, grad_sum.as<float>());
  sums.add_to(context, kGamma, a.grad_gamma.data<float>());
  sums.add_to(context, kBeta, a.grad_beta.data<float>());
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
  check_range("position", a.positions, a.position);
  check_range("segment", a.segments, a.segment);
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
