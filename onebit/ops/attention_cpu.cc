#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "onebit/ops/attention_cpu.cc"
#include "hwy/foreach_target.h"
//
#include <algorithm>
#include <cmath>

#include "onebit/device/scratch.h"
#include "onebit/kernels/cpu_op.h"
#include "onebit/kernels/float_type.h"
#include "onebit/kernels/for_parts.h"
#include "onebit/kernels/simd_dropout_inl.h"
#include "onebit/kernels/simd_math_inl.h"
#include "onebit/kernels/tile_product_inl.h"
#include "onebit/ops/attention.h"
#include "onebit/ops/attention_plan.h"
#include "onebit/ops/attention_tile.h"

HWY_BEFORE_NAMESPACE();
namespace onebit::ops::HWY_NAMESPACE {

using namespace kernels;
using namespace kernels::HWY_NAMESPACE;

namespace {

struct ForwardTiles {
  ForwardTiles(const AttentionLayout& layout, std::byte* memory) {
    ScratchCursor cursor(memory);
    key = cursor.take<float>(layout.transposed_elements());
    value = cursor.take<float>(layout.plain_elements());
    query = cursor.take<float>(layout.query_elements());
    context = cursor.take<float>(layout.query_elements());
    score = cursor.take<float>(layout.score_elements());
    inverse_sum = cursor.take<float>(kQueryTile);
    bits = cursor.take<uint16_t>(layout.bits_elements());
  }
  static int64_t size_bytes(const AttentionLayout& layout) {
    return 4 * (layout.transposed_elements() + layout.plain_elements() +
                2 * layout.query_elements() + layout.score_elements() + kQueryTile) +
           2 * layout.bits_elements() + 7 * 64;
  }

  float *key, *value;              // [head_size, keys], [keys, head_size]
  float *query, *context, *score;  // [queries, head_size], the same, [queries, keys]
  float* inverse_sum;              // [queries]
  uint16_t* bits;                  // [keys]
};

// Scores of one query to exp(score - maximum), dropped ones to zero. Returns log(sum exp(score)).
HWY_INLINE float softmax_row(float* score, int64_t keys, const DropoutPlan& plan,
                             const uint16_t* bits, float& inverse_sum) {
  const Vector first = set(score[0]);
  Vector best = first;
  for_lanes(keys, [&](int64_t i, auto lanes) HWY_ATTR {
    Vector value = load(score + i, lanes);
    if constexpr (std::is_same_v<decltype(lanes), First>) {
      value = hn::IfThenElse(hn::FirstN(F32(), lanes.lanes), value, first);
    }
    best = hn::Max(best, value);
  });
  const float maximum = hn::GetLane(hn::MaxOfLanes(F32(), best));
  Chains sums;
  for_lanes_chained(keys, [&](int64_t i, auto lanes, auto chain) HWY_ATTR {
    const Vector e = exponential(hn::Sub(load(score + i, lanes), set(maximum)));
    sums.chain[chain] = hn::Add(sums.chain[chain], keep(e, lanes));
    store(dropped(e, plan, bits + i), score + i, lanes);
  });
  const float sum = sums.sum();
  inverse_sum = 1.0f / sum;
  return maximum + std::log(sum);
}

template <typename T>
void forward_item(const Attention& a, const AttentionPlan& plan, const DropoutPlan& dropout,
                  const AttentionLayout& layout, const ForwardTiles& tiles, int64_t item) {
  const int64_t first = plan.first_row(item), keys = plan.length(item), head = plan.head(item);
  const int64_t size = plan.head_size, row_elements = 3 * plan.hidden;
  const T* query = a.qkv.data<T>() + first * row_elements + head * size;
  T* context = a.context.data<T>() + first * plan.hidden + head * size;
  pack_transposed(query + plan.hidden, row_elements, keys, size, tiles.key, layout.key_row);
  pack_rows(query + 2 * plan.hidden, row_elements, keys, size, 1.0f, tiles.value, layout.head_row);
  for (int64_t begin = 0; begin < keys; begin += kQueryTile) {
    const int64_t queries = std::min(kQueryTile, keys - begin);
    pack_rows(query + begin * row_elements, row_elements, queries, size, plan.scale, tiles.query,
              layout.head_row);
    tile_product<false>({.m = queries,
                         .n = keys,
                         .k = size,
                         .a = tiles.query,
                         .a_row = layout.head_row,
                         .a_step = 1,
                         .b = tiles.key,
                         .b_row = layout.key_row,
                         .c = tiles.score,
                         .c_row = layout.key_row});
    for (int64_t i = 0; i < queries; ++i) {
      const int64_t row = first + begin + i;
      if (dropout.active()) {
        draw_dropout_bits(dropout, dropout.row_keys[row], static_cast<uint32_t>(head * 8192), keys,
                          tiles.bits);
      }
      const float log_sum = softmax_row(tiles.score + i * layout.key_row, keys, dropout, tiles.bits,
                                        tiles.inverse_sum[i]);
      if (!a.log_sum_exp.empty()) a.log_sum_exp.data<float>()[head * plan.rows + row] = log_sum;
    }
    tile_product<false>({.m = queries,
                         .n = size,
                         .k = keys,
                         .a = tiles.score,
                         .a_row = layout.key_row,
                         .a_step = 1,
                         .b = tiles.value,
                         .b_row = layout.head_row,
                         .c = tiles.context,
                         .c_row = layout.head_row});
    for (int64_t i = 0; i < queries; ++i) {
      unpack_rows(tiles.context + i * layout.head_row, 0, 1, size, tiles.inverse_sum[i],
                  context + (begin + i) * plan.hidden, 0);
    }
  }
}

void attention(Context& context, const Attention& a) {
  const AttentionPlan plan(a.qkv, a.sequence_starts.host, a.heads);
  if (plan.longest == 0 || plan.head_size == 0) return;
  const DropoutPlan dropout(a.dropout);
  const AttentionLayout layout(plan.longest, plan.head_size);
  const int64_t parts = part_count(context, plan.item_count(), 1);
  const int64_t part_bytes = ForwardTiles::size_bytes(layout);
  const auto memory = context.scratch().take(parts * part_bytes);
  with_float_type(a.qkv.dtype(), [&](auto tag) HWY_ATTR {
    for_parts(context, parts, 1, [&](int64_t part, int64_t, int64_t) HWY_ATTR {
      const ForwardTiles tiles(layout, memory.data() + part * part_bytes);
      const int64_t end = plan.first_item(part + 1, parts);
      for (int64_t item = plan.first_item(part, parts); item < end; ++item) {
        if (plan.length(item) == 0) continue;
        forward_item<decltype(tag)>(a, plan, dropout, layout, tiles, item);
      }
    });
  });
}

struct BackwardTiles {
  BackwardTiles(const AttentionLayout& layout, std::byte* memory) {
    ScratchCursor cursor(memory);
    for (float** piece : {&key_transposed, &value_transposed}) {
      *piece = cursor.take<float>(layout.transposed_elements());
    }
    for (float** piece : {&key, &grad_key, &grad_value}) {
      *piece = cursor.take<float>(layout.plain_elements());
    }
    for (float** piece : {&query, &grad_context, &grad_query}) {
      *piece = cursor.take<float>(layout.query_elements());
    }
    for (float** piece : {&probability, &grad_score}) {
      *piece = cursor.take<float>(layout.score_elements());
    }
    bits = cursor.take<uint16_t>(layout.bits_elements());
  }
  static int64_t size_bytes(const AttentionLayout& layout) {
    return 4 * (2 * layout.transposed_elements() + 3 * layout.plain_elements() +
                3 * layout.query_elements() + 2 * layout.score_elements()) +
           2 * layout.bits_elements() + 11 * 64;
  }

  float *key_transposed, *value_transposed;  // [head_size, keys]
  float *key, *grad_key, *grad_value;        // [keys, head_size]
  float *query, *grad_context, *grad_query;  // [queries, head_size]
  float *probability, *grad_score;           // [queries, keys]
  uint16_t* bits;                            // [keys]
};

// In: scores, and the gradients of the dropped probabilities. Out: the dropped probabilities, and
// the gradients of the scores: p * (dropout * grad - grad_dot_context).
HWY_INLINE void softmax_backward_row(float* probability, float* grad_score, int64_t keys,
                                     float log_sum_exp, float grad_dot_context,
                                     const DropoutPlan& plan, const uint16_t* bits) {
  for_lanes(keys, [&](int64_t i, auto lanes) HWY_ATTR {
    const Vector p = exponential(hn::Sub(load(probability + i, lanes), set(log_sum_exp)));
    const Vector grad = dropped(load(grad_score + i, lanes), plan, bits + i);
    store(dropped(p, plan, bits + i), probability + i, lanes);
    store(hn::Mul(p, hn::Sub(grad, set(grad_dot_context))), grad_score + i, lanes);
  });
}

template <typename T>
HWY_INLINE float row_dot(const T* a, const T* b, int64_t count) {
  Chains sums;
  for_lanes_chained(count, [&](int64_t i, auto lanes, auto chain) HWY_ATTR {
    sums.chain[chain] = hn::MulAdd(load(a + i, lanes), load(b + i, lanes), sums.chain[chain]);
  });
  return sums.sum();
}

// One head of one sequence.
template <typename T>
struct Item {
  const AttentionBackward& a;
  const AttentionPlan& plan;
  const DropoutPlan& dropout;
  const AttentionLayout& layout;
  const BackwardTiles& tiles;
  int64_t first, keys, head, size, row_elements;
  const T *query, *grad_context, *context;
  T* grad_query;

  Item(const AttentionBackward& arguments, const AttentionPlan& attention_plan,
       const DropoutPlan& dropout_plan, const AttentionLayout& tile_layout,
       const BackwardTiles& memory, int64_t item)
      : a(arguments),
        plan(attention_plan),
        dropout(dropout_plan),
        layout(tile_layout),
        tiles(memory),
        first(plan.first_row(item)),
        keys(plan.length(item)),
        head(plan.head(item)),
        size(plan.head_size),
        row_elements(3 * plan.hidden),
        query(a.qkv.data<T>() + first * row_elements + head * size),
        grad_context(a.grad_context.data<T>() + first * plan.hidden + head * size),
        context(a.context.data<T>() + first * plan.hidden + head * size),
        grad_query(a.grad_qkv.data<T>() + first * row_elements + head * size) {}

  void run() const {
    const T *key = query + plan.hidden, *value = key + plan.hidden;
    pack_transposed(key, row_elements, keys, size, tiles.key_transposed, layout.key_row);
    pack_transposed(value, row_elements, keys, size, tiles.value_transposed, layout.key_row);
    pack_rows(key, row_elements, keys, size, 1.0f, tiles.key, layout.head_row);
    std::fill_n(tiles.grad_key, keys * layout.head_row, 0.0f);
    std::fill_n(tiles.grad_value, keys * layout.head_row, 0.0f);
    for (int64_t begin = 0; begin < keys; begin += kQueryTile) {
      const int64_t queries = std::min(kQueryTile, keys - begin);
      grad_scores(begin, queries);
      grad_products(begin, queries);
    }
    unpack_rows(tiles.grad_key, layout.head_row, keys, size, 1.0f, grad_query + plan.hidden,
                row_elements);
    unpack_rows(tiles.grad_value, layout.head_row, keys, size, 1.0f, grad_query + 2 * plan.hidden,
                row_elements);
  }

  // Leaves dropped probabilities and gradients of the scores of queries [begin, begin + queries).
  void grad_scores(int64_t begin, int64_t queries) const {
    pack_rows(query + begin * row_elements, row_elements, queries, size, plan.scale, tiles.query,
              layout.head_row);
    pack_rows(grad_context + begin * plan.hidden, plan.hidden, queries, size, 1.0f,
              tiles.grad_context, layout.head_row);
    TileProduct product{.m = queries,
                        .n = keys,
                        .k = size,
                        .a = tiles.query,
                        .a_row = layout.head_row,
                        .a_step = 1,
                        .b = tiles.key_transposed,
                        .b_row = layout.key_row,
                        .c = tiles.probability,
                        .c_row = layout.key_row};
    tile_product<false>(product);
    product.a = tiles.grad_context;
    product.b = tiles.value_transposed;
    product.c = tiles.grad_score;
    tile_product<false>(product);
    for (int64_t i = 0; i < queries; ++i) {
      const int64_t row = first + begin + i, place = (begin + i) * plan.hidden;
      if (dropout.active()) {
        draw_dropout_bits(dropout, dropout.row_keys[row], static_cast<uint32_t>(head * 8192), keys,
                          tiles.bits);
      }
      softmax_backward_row(
          tiles.probability + i * layout.key_row, tiles.grad_score + i * layout.key_row, keys,
          a.log_sum_exp.data<float>()[head * plan.rows + row],
          row_dot(grad_context + place, context + place, size), dropout, tiles.bits);
    }
  }

  // The gradients of values, keys and queries. The scale is in the packed queries, and is given to
  // the queries' gradient at the end.
  void grad_products(int64_t begin, int64_t queries) const {
    TileProduct to_keys{.m = keys,
                        .n = size,
                        .k = queries,
                        .a = tiles.probability,
                        .a_row = 1,
                        .a_step = layout.key_row,
                        .b = tiles.grad_context,
                        .b_row = layout.head_row,
                        .c = tiles.grad_value,
                        .c_row = layout.head_row};
    tile_product<true>(to_keys);
    to_keys.a = tiles.grad_score;
    to_keys.b = tiles.query;
    to_keys.c = tiles.grad_key;
    tile_product<true>(to_keys);
    tile_product<false>({.m = queries,
                         .n = size,
                         .k = keys,
                         .a = tiles.grad_score,
                         .a_row = layout.key_row,
                         .a_step = 1,
                         .b = tiles.key,
                         .b_row = layout.head_row,
                         .c = tiles.grad_query,
                         .c_row = layout.head_row});
    unpack_rows(tiles.grad_query, layout.head_row, queries, size, plan.scale,
                grad_query + begin * row_elements, row_elements);
  }
};

void attention_backward(Context& context, const AttentionBackward& a) {
  const AttentionPlan plan(a.qkv, a.sequence_starts.host, a.heads);
  if (plan.longest == 0 || plan.head_size == 0) return;
  const DropoutPlan dropout(a.dropout);
  const AttentionLayout layout(plan.longest, plan.head_size);
  const int64_t parts = part_count(context, plan.item_count(), 1);
  const int64_t part_bytes = BackwardTiles::size_bytes(layout);
  const auto memory = context.scratch().take(parts * part_bytes);
  with_float_type(a.qkv.dtype(), [&](auto tag) HWY_ATTR {
    for_parts(context, parts, 1, [&](int64_t part, int64_t, int64_t) HWY_ATTR {
      const BackwardTiles tiles(layout, memory.data() + part * part_bytes);
      const int64_t end = plan.first_item(part + 1, parts);
      for (int64_t item = plan.first_item(part, parts); item < end; ++item) {
        if (plan.length(item) == 0) continue;
        Item<decltype(tag)>(a, plan, dropout, layout, tiles, item).run();
      }
    });
  });
}

}  // namespace
}  // namespace onebit::ops::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace onebit::ops {

ONEBIT_CPU_OP(attention, Attention);
ONEBIT_CPU_OP(attention_backward, AttentionBackward);

}  // namespace onebit::ops
#endif
