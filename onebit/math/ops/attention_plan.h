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

struct AttentionPlan {
  AttentionPlan(const ConstView& qkv, std::span<const int32_t> starts, int64_t heads);

  int64_t item_count() const { return batch * heads; }
  // The first item of `part` of `parts`. Parts have about equal cost for any lengths.
  int64_t first_item(int64_t part, int64_t parts) const;

  int64_t first_row(int64_t item) const { return starts[sequence(item)]; }
  int64_t length(int64_t item) const {
    return int64_t{starts[sequence(item) + 1]} - starts[sequence(item)];
  }
  int64_t head(int64_t item) const { return item % heads; }

  std::span<const int32_t> starts;
  int64_t rows, heads, hidden, head_size, batch, longest;
  float scale;  // 1 / sqrt(head_size)

 private:
  size_t sequence(int64_t item) const { return static_cast<size_t>(item / heads); }
  int64_t cost_of_sequence(int64_t sequence) const;

  int64_t total_cost_;
};

inline AttentionPlan::AttentionPlan(const ConstView& qkv, std::span<const int32_t> sequence_starts,
                                    int64_t head_count)
    : starts(sequence_starts),
      rows(qkv.extent(0)),
      heads(head_count),
      hidden(qkv.extent(1) / 3),
      head_size(hidden / heads),
      batch(static_cast<int64_t>(starts.size()) - 1),
      longest(0),
      scale(static_cast<float>(1.0 /
                               std::sqrt(static_cast<double>(std::max<int64_t>(head_size, 1))))),
      total_cost_(0) {
  for (int64_t sequence = 0; sequence < batch; ++sequence) {
    longest = std::max(longest, length(sequence * heads));
    total_cost_ += cost_of_sequence(sequence) * heads;
  }
}

// Products grow with the square of the length. Packing and loading grow linearly.
inline int64_t AttentionPlan::cost_of_sequence(int64_t sequence) const {
  const int64_t tokens = length(sequence * heads);
  return tokens * (tokens + 64);
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

// The location of an item's rows.
struct AttentionPlace {
  AttentionPlace(const AttentionPlan& plan, int64_t item)
      : first(plan.first_row(item)),
        keys(plan.length(item)),
        head(plan.head(item)),
        size(plan.head_size),
        row_elements(3 * plan.hidden),
        in_qkv(first * row_elements + head * size),
        in_context(first * plan.hidden + head * size) {}

  int64_t first, keys, head, size;
  int64_t row_elements;        // elements of a row of qkv
  int64_t in_qkv, in_context;  // the first element of the head's queries and contexts
};

// The scratch memory of one attention item, with one layout for forward and backward.

// Queries processed together: an even multiple of the rows that a product keeps in registers.
inline constexpr int64_t kQueryTile = 48;

// Row lengths, padded for the widest vectors. The key row also avoids powers of two, with which a
// transposed write would hit few cache sets.
struct AttentionLayout {
  AttentionLayout(int64_t longest, int64_t head_size)
      : key_row((longest + 15) / 16 * 16 + 16),
        head_row((head_size + 15) / 16 * 16),
        keys(longest),
        head_size_(head_size) {}

  // [head_size, keys] or [head_size / 2, keys, 2]: keys or values transposed.
  int64_t transposed_elements() const { return head_size_ * key_row; }
  // [keys, head_size]: keys, values or their gradients.
  int64_t plain_elements() const { return keys * head_row; }
  // [keys / 2, head_size, 2]: pairs of keys or values, an odd last one paired with zeros.
  int64_t paired_elements() const { return (keys + keys % 2) * head_row; }
  // [queries, keys]: scores and the values derived from them.
  int64_t score_elements() const { return kQueryTile * key_row; }
  // [queries, head_size]: queries, contexts or their gradients.
  int64_t query_elements() const { return kQueryTile * head_row; }
  int64_t bits_elements() const { return kernels::dropout_bits_elements(keys); }

  int64_t key_row, head_row, keys;

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
