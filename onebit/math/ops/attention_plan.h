// The division of attention on a CPU: an item is one head of one sequence, which one thread
// computes from scores to gradients, so that no sum depends on the number of threads.
#pragma once

#include <cstdint>
#include <span>

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

}  // namespace onebit::ops
