#include "onebit/math/ops/attention_plan.h"

#include <algorithm>
#include <cmath>

namespace onebit::ops {

AttentionPlan::AttentionPlan(const ConstView& qkv, std::span<const int32_t> sequence_starts,
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
int64_t AttentionPlan::cost_of_sequence(int64_t sequence) const {
  const int64_t tokens = length(sequence * heads);
  return tokens * (tokens + 64);
}

int64_t AttentionPlan::first_item(int64_t part, int64_t parts) const {
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

}  // namespace onebit::ops
