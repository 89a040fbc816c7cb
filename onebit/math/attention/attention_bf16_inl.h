// Attention on processors that multiply bf16: queries, keys, values and the contexts' gradients are
// used as they are, probabilities and the scores' gradients are rounded to bf16. Softmax and all
// sums are f32. The scale is applied to sums, where it rounds no operand.

#if defined(ONEBIT_OPS_ATTENTION_BF16_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef ONEBIT_OPS_ATTENTION_BF16_INL_H_
#undef ONEBIT_OPS_ATTENTION_BF16_INL_H_
#else
#define ONEBIT_OPS_ATTENTION_BF16_INL_H_
#endif

#include <algorithm>

#include "onebit/math/attention/attention.h"
#include "onebit/math/attention/attention_plan.h"
#include "onebit/math/attention/attention_rows_inl.h"
#include "onebit/math/kernels/bf16_tile_product.h"

HWY_BEFORE_NAMESPACE();
namespace onebit::ops::HWY_NAMESPACE {

namespace simd = kernels::HWY_NAMESPACE;

struct Bf16ForwardTiles {
  Bf16ForwardTiles(const AttentionLayout& layout, std::byte* memory) {
    ScratchCursor cursor(memory);
    key = cursor.take<bf16>(layout.transposed_elements());
    value = cursor.take<bf16>(layout.paired_elements());
    probability = cursor.take<bf16>(layout.score_elements());
    score = cursor.take<float>(layout.score_elements());
    context = cursor.take<float>(layout.query_elements());
    inverse_sum = cursor.take<float>(kQueryTile);
    bits = cursor.take<uint16_t>(layout.bits_elements());
  }
  static int64_t size_bytes(const AttentionLayout& layout) {
    return 2 * (layout.transposed_elements() + layout.paired_elements() + layout.score_elements() +
                layout.bits_elements()) +
           4 * (layout.score_elements() + layout.query_elements() + kQueryTile) + 7 * 64;
  }

  bf16 *key, *value;       // [head_size / 2, keys, 2], [keys / 2, head_size, 2]
  bf16* probability;       // [queries, keys]
  float *score, *context;  // [queries, keys], [queries, head_size]
  float* inverse_sum;      // [queries]
  uint16_t* bits;          // [keys]
};

struct Bf16Forward {
  using Tiles = Bf16ForwardTiles;

  const Attention& a;
  const AttentionPlan& plan;
  const kernels::DropoutPlan& dropout;
  const AttentionLayout& layout;
  const Tiles& tiles;
  AttentionPlace at;

  void run() const {
    const bf16* query = a.qkv.data<bf16>() + at.in_qkv;
    bf16* context = a.context.data<bf16>() + at.in_context;
    kernels::pair_columns(query + plan.hidden, at.row_elements, at.keys, at.size, tiles.key,
                          2 * layout.key_row);
    kernels::pair_rows(query + 2 * plan.hidden, at.row_elements, at.keys, at.size, tiles.value,
                       2 * layout.head_row);
    for (int64_t begin = 0; begin < at.keys; begin += kQueryTile) {
      const int64_t queries = std::min(kQueryTile, at.keys - begin);
      const KeyRange seen = at.keys_of(begin, queries);
      probabilities(query + begin * at.row_elements, begin, queries, seen);
      kernels::bf16_tile_product({.m = queries,
                                  .n = at.size,
                                  .pairs = kernels::bf16_pairs(seen.count()),
                                  .a = tiles.probability,
                                  .a_row = layout.score_row,
                                  .a_step = 2,
                                  .b = tiles.value + seen.begin * layout.head_row,
                                  .b_row = 2 * layout.head_row,
                                  .c = tiles.context,
                                  .c_row = layout.head_row});
      for (int64_t i = 0; i < queries; ++i) {
        kernels::round_row(tiles.context + i * layout.head_row, at.size, tiles.inverse_sum[i],
                           context + (begin + i) * plan.hidden);
      }
    }
  }

  // Computes the dropped exp(score - maximum) of `queries` queries from `begin` on.
  void probabilities(const bf16* query, int64_t begin, int64_t queries,
                     const KeyRange& seen) const {
    kernels::bf16_tile_product({.m = queries,
                                .n = seen.count(),
                                .pairs = at.size / 2,
                                .a = query,
                                .a_row = at.row_elements,
                                .a_step = 2,
                                .b = tiles.key + 2 * seen.begin,
                                .b_row = 2 * layout.key_row,
                                .c = tiles.score,
                                .c_row = layout.score_row,
                                .factor = plan.scale});
    for (int64_t i = 0; i < queries; ++i) {
      const AttentionRow row{at, dropout, seen, begin + i, tiles.bits};
      float* score = tiles.score + i * layout.score_row;
      const float log_sum = row.softmax(score, tiles.inverse_sum[i]);
      if (!a.log_sum_exp.empty()) {
        a.log_sum_exp.data<float>()[at.head * plan.rows + row.row()] = log_sum;
      }
      score[seen.count()] = 0;  // the partner of an odd last key
      kernels::round_row(score, seen.count() + seen.count() % 2, 1.0f,
                         tiles.probability + i * layout.score_row);
    }
  }
};

struct Bf16BackwardTiles {
  Bf16BackwardTiles(const AttentionLayout& layout, std::byte* memory) {
    ScratchCursor cursor(memory);
    for (bf16** piece : {&key_columns, &value_columns}) {
      *piece = cursor.take<bf16>(layout.transposed_elements());
    }
    key_rows = cursor.take<bf16>(layout.paired_elements());
    for (bf16** piece : {&query_rows, &grad_context_rows}) {
      *piece = cursor.take<bf16>(layout.query_elements());
    }
    for (bf16** piece : {&probability_rows, &grad_score_rows, &grad_score_plain}) {
      *piece = cursor.take<bf16>(layout.score_elements());
    }
    for (float** piece : {&probability, &grad_score}) {
      *piece = cursor.take<float>(layout.score_elements());
    }
    for (float** piece : {&grad_key, &grad_value}) {
      *piece = cursor.take<float>(layout.plain_elements());
    }
    grad_query = cursor.take<float>(layout.query_elements());
    bits = cursor.take<uint16_t>(layout.bits_elements());
  }
  static int64_t size_bytes(const AttentionLayout& layout) {
    return 2 * (2 * layout.transposed_elements() + layout.paired_elements() +
                2 * layout.query_elements() + 3 * layout.score_elements() +
                layout.bits_elements()) +
           4 * (2 * layout.score_elements() + 2 * layout.plain_elements() +
                layout.query_elements()) +
           14 * 64;
  }

  bf16 *key_columns, *value_columns;          // [head_size / 2, keys, 2]
  bf16* key_rows;                             // [keys / 2, head_size, 2]
  bf16 *query_rows, *grad_context_rows;       // [queries / 2, head_size, 2]
  bf16 *probability_rows, *grad_score_rows;   // [queries / 2, keys, 2]
  bf16* grad_score_plain;                     // [queries, keys]
  float *probability, *grad_score;            // [queries, keys]
  float *grad_key, *grad_value, *grad_query;  // [keys or queries, head_size]
  uint16_t* bits;                             // [keys]
};

struct Bf16Backward {
  using Tiles = Bf16BackwardTiles;

  const AttentionBackward& a;
  const AttentionPlan& plan;
  const kernels::DropoutPlan& dropout;
  const AttentionLayout& layout;
  const Tiles& tiles;
  AttentionPlace at;

  void run() const {
    const bf16* query = a.qkv.data<bf16>() + at.in_qkv;
    const bf16 *key = query + plan.hidden, *value = key + plan.hidden;
    const bf16* grad_context = a.grad_context.data<bf16>() + at.in_context;
    bf16* grad_query = a.grad_qkv.data<bf16>() + at.in_qkv;
    const int64_t wide = at.row_elements;
    kernels::pair_columns(key, wide, at.keys, at.size, tiles.key_columns, 2 * layout.key_row);
    kernels::pair_columns(value, wide, at.keys, at.size, tiles.value_columns, 2 * layout.key_row);
    kernels::pair_rows(key, wide, at.keys, at.size, tiles.key_rows, 2 * layout.head_row);
    if (plan.has_window()) {  // otherwise the first tile overwrites them
      std::fill_n(tiles.grad_key, at.keys * layout.head_row, 0.0f);
      std::fill_n(tiles.grad_value, at.keys * layout.head_row, 0.0f);
    }
    for (int64_t begin = 0; begin < at.keys; begin += kQueryTile) {
      const int64_t queries = std::min(kQueryTile, at.keys - begin);
      const KeyRange seen = at.keys_of(begin, queries);
      grad_scores(query + begin * wide, grad_context + begin * plan.hidden, begin, queries, seen);
      round_scores(queries, seen.count());
      kernels::pair_rows(query + begin * wide, wide, queries, at.size, tiles.query_rows,
                         2 * layout.head_row);
      kernels::pair_rows(grad_context + begin * plan.hidden, plan.hidden, queries, at.size,
                         tiles.grad_context_rows, 2 * layout.head_row);
      grad_products(begin > 0 || plan.has_window(), queries, seen, grad_query + begin * wide);
    }
    for (int64_t i = 0; i < at.keys; ++i) {
      bf16* to = grad_query + i * wide;
      kernels::round_row(tiles.grad_key + i * layout.head_row, at.size, plan.scale,
                         to + plan.hidden);
      kernels::round_row(tiles.grad_value + i * layout.head_row, at.size, 1.0f,
                         to + 2 * plan.hidden);
    }
  }

  // Computes dropped probabilities and the scores' gradients of `queries` queries from `begin` on.
  void grad_scores(const bf16* query, const bf16* grad_context, int64_t begin, int64_t queries,
                   const KeyRange& seen) const {
    kernels::Bf16TileProduct product{.m = queries,
                                     .n = seen.count(),
                                     .pairs = at.size / 2,
                                     .a = query,
                                     .a_row = at.row_elements,
                                     .a_step = 2,
                                     .b = tiles.key_columns + 2 * seen.begin,
                                     .b_row = 2 * layout.key_row,
                                     .c = tiles.probability,
                                     .c_row = layout.score_row,
                                     .factor = plan.scale};
    kernels::bf16_tile_product(product);
    product.a = grad_context;
    product.a_row = plan.hidden;
    product.b = tiles.value_columns + 2 * seen.begin;
    product.c = tiles.grad_score;
    product.factor = 1;
    kernels::bf16_tile_product(product);
    const bf16* context = a.context.data<bf16>() + at.in_context + begin * plan.hidden;
    for (int64_t i = 0; i < queries; ++i) {
      const AttentionRow row{at, dropout, seen, begin + i, tiles.bits};
      const int64_t place = i * plan.hidden;
      row.softmax_backward(tiles.probability + i * layout.score_row,
                           tiles.grad_score + i * layout.score_row,
                           a.log_sum_exp.data<float>()[at.head * plan.rows + row.row()],
                           simd::row_dot(grad_context + place, context + place, at.size));
    }
  }

  // A product pairs elements along its summation axis: queries for the gradients of keys and
  // values, keys for the gradient of queries.
  void round_scores(int64_t queries, int64_t keys) const {
    kernels::round_to_row_pairs(tiles.probability, layout.score_row, queries, keys,
                                tiles.probability_rows, 2 * layout.score_row);
    kernels::round_to_row_pairs(tiles.grad_score, layout.score_row, queries, keys,
                                tiles.grad_score_rows, 2 * layout.score_row);
    for (int64_t i = 0; i < queries; ++i) {
      float* grad_score = tiles.grad_score + i * layout.score_row;
      grad_score[keys] = 0;  // the partner of an odd last key
      kernels::round_row(grad_score, keys + keys % 2, 1.0f,
                         tiles.grad_score_plain + i * layout.score_row);
    }
  }

  // The gradients of values, keys and queries. Those of keys and queries are scaled at the end.
  // `adds`: to the gradients of keys and values.
  void grad_products(bool adds, int64_t queries, const KeyRange& seen, bf16* grad_query) const {
    const int64_t first_key = seen.begin * layout.head_row;
    kernels::Bf16TileProduct to_keys{.m = seen.count(),
                                     .n = at.size,
                                     .pairs = kernels::bf16_pairs(queries),
                                     .a = tiles.probability_rows,
                                     .a_row = 2,
                                     .a_step = 2 * layout.score_row,
                                     .b = tiles.grad_context_rows,
                                     .b_row = 2 * layout.head_row,
                                     .c = tiles.grad_value + first_key,
                                     .c_row = layout.head_row,
                                     .add = adds};
    kernels::bf16_tile_product(to_keys);
    to_keys.a = tiles.grad_score_rows;
    to_keys.b = tiles.query_rows;
    to_keys.c = tiles.grad_key + first_key;
    kernels::bf16_tile_product(to_keys);
    kernels::bf16_tile_product({.m = queries,
                                .n = at.size,
                                .pairs = kernels::bf16_pairs(seen.count()),
                                .a = tiles.grad_score_plain,
                                .a_row = layout.score_row,
                                .a_step = 2,
                                .b = tiles.key_rows + first_key,
                                .b_row = 2 * layout.head_row,
                                .c = tiles.grad_query,
                                .c_row = layout.head_row});
    for (int64_t i = 0; i < queries; ++i) {
      kernels::round_row(tiles.grad_query + i * layout.head_row, at.size, plan.scale,
                         grad_query + i * at.row_elements);
    }
  }
};

}  // namespace onebit::ops::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
