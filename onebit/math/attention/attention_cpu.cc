#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "onebit/math/attention/attention_cpu.cc"
#include "hwy/foreach_target.h"
//
#include <algorithm>
#include <type_traits>

#include "onebit/math/attention/attention.h"
#include "onebit/math/attention/attention_bf16_inl.h"
#include "onebit/math/attention/attention_plan.h"
#include "onebit/math/attention/attention_rows_inl.h"
#include "onebit/math/device/scratch.h"
#include "onebit/math/kernels/cpu_op.h"
#include "onebit/math/kernels/for_parts.h"
#include "onebit/math/kernels/tile_product_inl.h"
#include "onebit/math/ops/reduce.h"

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

template <typename T>
struct Forward {
  using Tiles = ForwardTiles;

  const Attention& a;
  const AttentionPlan& plan;
  const DropoutPlan& dropout;
  const AttentionLayout& layout;
  const Tiles& tiles;
  AttentionPlace at;

  void run() const {
    const T* query = a.qkv.data<T>() + at.in_qkv;
    T* context = a.context.data<T>() + at.in_context;
    pack_transposed(query + plan.hidden, at.row_elements, at.keys, at.size, tiles.key,
                    layout.key_row);
    pack_rows(query + 2 * plan.hidden, at.row_elements, at.keys, at.size, 1.0f, tiles.value,
              layout.head_row);
    for (int64_t begin = 0; begin < at.keys; begin += kQueryTile) {
      const int64_t queries = std::min(kQueryTile, at.keys - begin);
      const KeyRange seen = at.keys_of(begin, queries);
      probabilities(query + begin * at.row_elements, begin, queries, seen);
      tile_product<false>({.m = queries,
                           .n = at.size,
                           .k = seen.count(),
                           .a = tiles.score,
                           .a_row = layout.score_row,
                           .a_step = 1,
                           .b = tiles.value + seen.begin * layout.head_row,
                           .b_row = layout.head_row,
                           .c = tiles.context,
                           .c_row = layout.head_row});
      for (int64_t i = 0; i < queries; ++i) {
        unpack_rows(tiles.context + i * layout.head_row, 0, 1, at.size, tiles.inverse_sum[i],
                    context + (begin + i) * plan.hidden, 0);
      }
    }
  }

  // Computes the dropped exp(score - maximum) of `queries` queries from `begin` on.
  void probabilities(const T* query, int64_t begin, int64_t queries, const KeyRange& seen) const {
    pack_rows(query, at.row_elements, queries, at.size, plan.scale, tiles.query, layout.head_row);
    tile_product<false>({.m = queries,
                         .n = seen.count(),
                         .k = at.size,
                         .a = tiles.query,
                         .a_row = layout.head_row,
                         .a_step = 1,
                         .b = tiles.key + seen.begin,
                         .b_row = layout.key_row,
                         .c = tiles.score,
                         .c_row = layout.score_row});
    for (int64_t i = 0; i < queries; ++i) {
      const AttentionRow row{at, dropout, seen, begin + i, tiles.bits};
      const float log_sum = row.softmax(tiles.score + i * layout.score_row, tiles.inverse_sum[i]);
      if (a.log_sum_exp.empty()) continue;
      a.log_sum_exp.data<float>()[at.head * plan.rows + row.row()] = log_sum;
    }
  }
};

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

template <typename T>
struct Backward {
  using Tiles = BackwardTiles;

  const AttentionBackward& a;
  const AttentionPlan& plan;
  const DropoutPlan& dropout;
  const AttentionLayout& layout;
  const Tiles& tiles;
  AttentionPlace at;

  void run() const {
    const T* query = a.qkv.data<T>() + at.in_qkv;
    const T *key = query + plan.hidden, *value = key + plan.hidden;
    T* grad_query = a.grad_qkv.data<T>() + at.in_qkv;
    pack_transposed(key, at.row_elements, at.keys, at.size, tiles.key_transposed, layout.key_row);
    pack_transposed(value, at.row_elements, at.keys, at.size, tiles.value_transposed,
                    layout.key_row);
    pack_rows(key, at.row_elements, at.keys, at.size, 1.0f, tiles.key, layout.head_row);
    std::fill_n(tiles.grad_key, at.keys * layout.head_row, 0.0f);
    std::fill_n(tiles.grad_value, at.keys * layout.head_row, 0.0f);
    for (int64_t begin = 0; begin < at.keys; begin += kQueryTile) {
      const int64_t queries = std::min(kQueryTile, at.keys - begin);
      const KeyRange seen = at.keys_of(begin, queries);
      grad_scores(query + begin * at.row_elements, begin, queries, seen);
      grad_products(queries, seen, grad_query + begin * at.row_elements);
    }
    unpack_rows(tiles.grad_key, layout.head_row, at.keys, at.size, 1.0f, grad_query + plan.hidden,
                at.row_elements);
    unpack_rows(tiles.grad_value, layout.head_row, at.keys, at.size, 1.0f,
                grad_query + 2 * plan.hidden, at.row_elements);
  }

  // Computes dropped probabilities and the scores' gradients of queries [begin, begin + queries).
  void grad_scores(const T* query, int64_t begin, int64_t queries, const KeyRange& seen) const {
    const T* grad_context = a.grad_context.data<T>() + at.in_context + begin * plan.hidden;
    const T* context = a.context.data<T>() + at.in_context + begin * plan.hidden;
    pack_rows(query, at.row_elements, queries, at.size, plan.scale, tiles.query, layout.head_row);
    pack_rows(grad_context, plan.hidden, queries, at.size, 1.0f, tiles.grad_context,
              layout.head_row);
    TileProduct product{.m = queries,
                        .n = seen.count(),
                        .k = at.size,
                        .a = tiles.query,
                        .a_row = layout.head_row,
                        .a_step = 1,
                        .b = tiles.key_transposed + seen.begin,
                        .b_row = layout.key_row,
                        .c = tiles.probability,
                        .c_row = layout.score_row};
    tile_product<false>(product);
    product.a = tiles.grad_context;
    product.b = tiles.value_transposed + seen.begin;
    product.c = tiles.grad_score;
    tile_product<false>(product);
    for (int64_t i = 0; i < queries; ++i) {
      const AttentionRow row{at, dropout, seen, begin + i, tiles.bits};
      const int64_t place = i * plan.hidden;
      row.softmax_backward(tiles.probability + i * layout.score_row,
                           tiles.grad_score + i * layout.score_row,
                           a.log_sum_exp.data<float>()[at.head * plan.rows + row.row()],
                           row_dot(grad_context + place, context + place, at.size));
    }
  }

  // The gradients of values, keys and queries. The packed queries contain the scale, by which the
  // queries' gradient is multiplied at the end.
  void grad_products(int64_t queries, const KeyRange& seen, T* grad_query) const {
    TileProduct to_keys{.m = seen.count(),
                        .n = at.size,
                        .k = queries,
                        .a = tiles.probability,
                        .a_row = 1,
                        .a_step = layout.score_row,
                        .b = tiles.grad_context,
                        .b_row = layout.head_row,
                        .c = tiles.grad_value + seen.begin * layout.head_row,
                        .c_row = layout.head_row};
    tile_product<true>(to_keys);
    to_keys.a = tiles.grad_score;
    to_keys.b = tiles.query;
    to_keys.c = tiles.grad_key + seen.begin * layout.head_row;
    tile_product<true>(to_keys);
    tile_product<false>({.m = queries,
                         .n = at.size,
                         .k = seen.count(),
                         .a = tiles.grad_score,
                         .a_row = layout.score_row,
                         .a_step = 1,
                         .b = tiles.key + seen.begin * layout.head_row,
                         .b_row = layout.head_row,
                         .c = tiles.grad_query,
                         .c_row = layout.head_row});
    unpack_rows(tiles.grad_query, layout.head_row, queries, at.size, plan.scale, grad_query,
                at.row_elements);
  }
};

// Pass::run() for every head of every sequence.
template <class Pass, class Arguments>
void for_heads(Context& context, const AttentionPlan& plan, const Arguments& a) {
  const DropoutPlan dropout(a.dropout);
  const AttentionLayout layout(plan);
  const int64_t parts = part_count(context, plan.item_count(), 1);
  const int64_t part_bytes = Pass::Tiles::size_bytes(layout);
  const auto memory = context.scratch().take(parts * part_bytes);
  for_parts(context, parts, 1, [&](int64_t part, int64_t, int64_t) HWY_ATTR {
    const typename Pass::Tiles tiles(layout, memory.data() + part * part_bytes);
    const int64_t end = plan.first_item(part + 1, parts);
    for (int64_t item = plan.first_item(part, parts); item < end; ++item) {
      if (plan.length(item) == 0) continue;
      Pass{a, plan, dropout, layout, tiles, AttentionPlace(plan, item)}.run();
    }
  });
}

// Uses pairs of bf16 if the type, the head size and the processor allow it, otherwise f32. The
// baseline target omits the bf16 half: a processor with bf16 instructions runs the AVX-512 target,
// or AVX2 in builds without AVX-512 loops (such as sanitizer builds).
template <template <typename> class Pass, class Bf16Pass, class Arguments>
void for_heads_of_type(Context& context, const AttentionPlan& plan, const Arguments& a) {
  if (plan.longest == 0 || plan.head_size == 0) return;
  with_float_type(a.qkv.dtype(), [&](auto tag) HWY_ATTR {
    using T = decltype(tag);
    if constexpr (std::is_same_v<T, bf16> && HWY_TARGET <= HWY_AVX2) {
      if (plan.head_size % 2 == 0 && has_bf16_products()) {
        return for_heads<Bf16Pass>(context, plan, a);
      }
    }
    for_heads<Pass<T>>(context, plan, a);
  });
}

void attention(Context& context, const Attention& a) {
  for_heads_of_type<Forward, Bf16Forward>(context, AttentionPlan(a), a);
}

// Adds the items' sums to the gradient of the bias of scores, sequence by sequence.
void add_score_bias_sums(Context& context, const AttentionPlan& plan, const View& gradient) {
  for_parts(context, plan.heads, 1, [&](int64_t, int64_t begin, int64_t end) HWY_ATTR {
    for (int64_t head = begin; head < end; ++head) {
      float* middle = gradient.data<float>() + head * plan.score_bias_row + plan.score_bias_row / 2;
      for (int64_t sequence = 0; sequence < plan.batch; ++sequence) {
        const AttentionPlace at(plan, sequence * plan.heads + head);
        for (int64_t distance = 1 - at.keys; distance < at.keys; ++distance) {
          middle[distance] += at.bias_sums[distance];
        }
      }
    }
  });
}

void attention_backward(Context& context, const AttentionBackward& a) {
  AttentionPlan plan(a);
  const int64_t sums = a.grad_score_bias.empty() ? 0 : plan.heads * 2 * plan.rows;
  const auto memory = context.scratch().take(sums * 4);
  if (sums > 0) {
    plan.score_bias_sums = memory.as<float>();
    std::fill_n(plan.score_bias_sums, sums, 0.0f);
  }
  for_heads_of_type<Backward, Bf16Backward>(context, plan, a);
  if (sums > 0) add_score_bias_sums(context, plan, a.grad_score_bias);
  if (!a.grad_bias.empty()) column_sum(context, {.x = a.grad_qkv, .sum = a.grad_bias});
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
