#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "onebit/ops/attention_cpu.cc"
#include "hwy/foreach_target.h"
//
#include <algorithm>
#include <cmath>

#include "onebit/device/onednn_door.h"
#include "onebit/ops/attention_plan.h"
#include "onebit/ops/attention_tile.h"
#include "onebit/ops/cpu_ops.h"
#include "onebit/ops/parts.h"
#include "onebit/ops/simd_dropout_inl.h"
#include "onebit/ops/simd_math_inl.h"
#include "onebit/ops/tile_product_inl.h"

HWY_BEFORE_NAMESPACE();
namespace onebit::ops::HWY_NAMESPACE {
namespace {

struct Tiles {
  Tiles(const AttentionLayout& layout, std::byte* memory) {
    Carver carver(memory);
    key = carver.take<float>(layout.transposed_elements());
    value = carver.take<float>(layout.plain_elements());
    query = carver.take<float>(layout.query_elements());
    context = carver.take<float>(layout.query_elements());
    score = carver.take<float>(layout.score_elements());
    inverse_sum = carver.take<float>(kQueryTile);
    bits = carver.take<uint16_t>(layout.bits_elements());
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
                  const AttentionLayout& layout, const Tiles& tiles, int64_t item) {
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
  const int64_t part_bytes = Tiles::size_bytes(layout);
  const auto memory = context.onednn().scratch().take(parts * part_bytes);
  with_float_type(a.qkv.dtype(), [&](auto tag) HWY_ATTR {
    for_parts(context, parts, 1, [&](int64_t part, int64_t, int64_t) HWY_ATTR {
      const Tiles tiles(layout, memory.data() + part * part_bytes);
      const int64_t end = plan.first_item(part + 1, parts);
      for (int64_t item = plan.first_item(part, parts); item < end; ++item) {
        if (plan.length(item) == 0) continue;
        forward_item<decltype(tag)>(a, plan, dropout, layout, tiles, item);
      }
    });
  });
}

}  // namespace
}  // namespace onebit::ops::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace onebit::ops {

HWY_EXPORT(attention);

namespace cpu {

void attention(Context& context, const Attention& a) {
  HWY_DYNAMIC_DISPATCH(attention)(context, a);
}

}  // namespace cpu
}  // namespace onebit::ops
#endif
