// The division of attention on a CPU: an item is one head of one sequence, which one thread
// computes from scores to gradients, so that no sum depends on the number of threads.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>

#include "onebit/math/kernels/dropout_mask.h"
#include "onebit/math/tensor/view.h"

namespace onebit::ops {

// Queries processed together: an even multiple of the rows that a product keeps in registers.
inline constexpr int64_t kQueryTile = 48;

struct AttentionPlan {
  // A is Attention or AttentionBackward.
  template <class A>
  explicit AttentionPlan(const A& a);

  int64_t item_count() const { return batch * heads; }
  // The first item of `part` of `parts`. Parts have about equal cost for any lengths.
  int64_t first_item(int64_t part, int64_t parts) const;

  int64_t first_row(int64_t item) const { return starts[sequence(item)]; }
  int64_t length(int64_t item) const {
    return int64_t{starts[sequence(item) + 1]} - starts[sequence(item)];
  }
  int64_t head(int64_t item) const { return item % heads; }
  // The most keys that the queries of a tile see.
  int64_t widest() const { return std::min(longest, kQueryTile + 2 * window + kKeysBefore); }
  bool has_window() const { return window < longest; }

  std::span<const int32_t> starts;
  int64_t rows, heads, hidden, head_size, batch, longest;
  int64_t window;  // at most `longest`, with which queries see all keys
  float scale;     // 1 / sqrt(head_size)
  // [heads, score_bias_row], null without a bias of scores. Distance 0 is in the middle.
  const float* score_bias;
  int64_t score_bias_row;
  // f32 [heads, 2 * rows]: the gradients of scores, summed over each item for each distance of key
  // and query. A sequence has 2 * length - 1 distances. They begin at 2 * its first row. Null if
  // they are not computed.
  float* score_bias_sums = nullptr;

  // The first key of a tile is a multiple of it, as the words of dropout's bits are.
  static constexpr int64_t kKeysBefore = kernels::kDropoutLanes;

 private:
  size_t sequence(int64_t item) const { return static_cast<size_t>(item / heads); }
  int64_t cost_of_sequence(int64_t sequence) const;

  int64_t total_cost_;
};

template <class A>
AttentionPlan::AttentionPlan(const A& a)
    : starts(a.sequence_starts.host),
      rows(a.qkv.extent(0)),
      heads(a.heads),
      hidden(a.qkv.extent(1) / 3),
      head_size(hidden / heads),
      batch(static_cast<int64_t>(starts.size()) - 1),
      longest(a.sequence_starts.longest()),
      window(a.window < 0 ? longest : std::min(a.window, longest)),
      scale(static_cast<float>(1.0 /
                               std::sqrt(static_cast<double>(std::max<int64_t>(head_size, 1))))),
      score_bias(a.score_bias.template data<float>()),
      score_bias_row(a.score_bias.empty() ? 0 : a.score_bias.extent(1)),
      total_cost_(0) {
  for (int64_t sequence = 0; sequence < batch; ++sequence) {
    total_cost_ += cost_of_sequence(sequence) * heads;
  }
}

// Products grow with the number of keys that a query's tile sees. Packing and loading grow
// linearly.
inline int64_t AttentionPlan::cost_of_sequence(int64_t sequence) const {
  const int64_t tokens = length(sequence * heads);
  return tokens * (std::min(tokens, 2 * window + kQueryTile) + 64);
}

inline int64_t AttentionPlan::first_item(int64_t part, int64_t parts) const {
  if (part == parts) return item_count();
  const int64_t wanted = total_cost_ / parts * part;
  int64_t before = 0;
  for (int64_t sequence = 0; sequence < batch; ++sequence) {
    const int64_t cost = cost_of_sequence(sequence);
    if (before + cost * heads > wanted) {
      return sequence * heads + (wanted - before + cost - 1) / std::max<int64_t>(cost, 1);
    }
    before += cost * heads;
  }
  return item_count();
}

// Keys [begin, end) of a sequence, or of a tile.
struct KeyRange {
  int64_t begin, end;

  int64_t count() const { return end - begin; }
};

// The location of an item's rows.
struct AttentionPlace {
  AttentionPlace(const AttentionPlan& plan, int64_t item)
      : first(plan.first_row(item)),
        keys(plan.length(item)),
        head(plan.head(item)),
        size(plan.head_size),
        window(plan.window),
        row_elements(3 * plan.hidden),
        in_qkv(first * row_elements + head * size),
        in_context(first * plan.hidden + head * size) {
    if (plan.score_bias != nullptr) {
      bias = plan.score_bias + head * plan.score_bias_row + plan.score_bias_row / 2;
    }
    if (plan.score_bias_sums != nullptr) {
      bias_sums = plan.score_bias_sums + head * 2 * plan.rows + 2 * first + keys - 1;
    }
  }

  // The keys that queries [begin, begin + queries) see.
  KeyRange keys_of(int64_t begin, int64_t queries) const {
    const int64_t from = std::max<int64_t>(0, begin - window);
    return {from / AttentionPlan::kKeysBefore * AttentionPlan::kKeysBefore,
            std::min(keys, begin + queries + window)};
  }
  // The keys of one query, counted from the tile's first key.
  KeyRange keys_of_query(int64_t query, const KeyRange& tile) const {
    return {std::max(tile.begin, query - window) - tile.begin,
            std::min(tile.end, query + window + 1) - tile.begin};
  }

  int64_t first, keys, head, size, window;
  int64_t row_elements;         // elements of a row of qkv
  int64_t in_qkv, in_context;   // the first element of the head's queries and contexts
  const float* bias = nullptr;  // of the scores where key and query are the same token
  float* bias_sums = nullptr;   // likewise, of the gradients of scores
};

// The scratch memory of one attention item, with one layout for forward and backward.

// Row lengths, padded for the widest vectors. The key row also avoids powers of two, with which a
// transposed write would hit few cache sets.
struct AttentionLayout {
  explicit AttentionLayout(const AttentionPlan& plan)
      : key_row((plan.longest + 15) / 16 * 16 + 16),
        score_row((plan.widest() + 15) / 16 * 16 + 16),
        head_row((plan.head_size + 15) / 16 * 16),
        keys(plan.longest),
        head_size_(plan.head_size) {}

  // [head_size, keys] or [head_size / 2, keys, 2]: keys or values transposed.
  int64_t transposed_elements() const { return head_size_ * key_row; }
  // [keys, head_size]: keys, values or their gradients.
  int64_t plain_elements() const { return keys * head_row; }
  // [keys / 2, head_size, 2]: pairs of keys or values, an odd last one paired with zeros.
  int64_t paired_elements() const { return (keys + keys % 2) * head_row; }
  // [queries, keys of a tile]: scores and the values derived from them.
  int64_t score_elements() const { return kQueryTile * score_row; }
  // [queries, head_size]: queries, contexts or their gradients.
  int64_t query_elements() const { return kQueryTile * head_row; }
  int64_t bits_elements() const { return kernels::dropout_bits_elements(score_row); }

  int64_t key_row, score_row, head_row, keys;

 private:
  int64_t head_size_;
};

// Takes typed arrays from the front of a block of memory.
class ScratchCursor {
 public:
  explicit ScratchCursor(std::byte* data) : data_(data) {}
  template <typename T>
  T* take(int64_t elements) {
    T* piece = reinterpret_cast<T*>(data_);
    data_ += (elements * static_cast<int64_t>(sizeof(T)) + 63) / 64 * 64;
    return piece;
  }

 private:
  std::byte* data_;
};

}  // namespace onebit::ops
