#include "onebit/math/tensor/stale_gradients.h"

#include <algorithm>
#include <utility>

namespace onebit {

void StaleGradients::cover(int parameter, Range range) {
  const auto is_before = [](const Covered& a, const Covered& b) {
    return a.range.begin < b.range.begin;
  };
  for (const Covered& covered : covered_) {
    if (covered.parameter == parameter) return;
  }
  const Covered added{parameter, range, false};
  covered_.insert(std::upper_bound(covered_.begin(), covered_.end(), added, is_before), added);
}

std::vector<Range> StaleGradients::begin_update(int64_t size_elements) {
  if (is_left_to_caller_) return {};
  std::vector<Range> others;
  int64_t end = 0;
  const auto add_until = [&](int64_t begin) {
    if (begin > end) others.push_back({end, begin});
  };
  for (Covered& covered : covered_) {
    covered.is_stale = true;
    add_until(covered.range.begin);
    end = covered.range.end;
  }
  add_until(size_elements);
  return others;
}

bool StaleGradients::take(int parameter) {
  for (Covered& covered : covered_) {
    if (covered.parameter == parameter) return std::exchange(covered.is_stale, false);
  }
  return false;
}

std::vector<Range> StaleGradients::take(Range within) {
  std::vector<Range> stale;
  for (Covered& covered : covered_) {
    const bool is_within = covered.range.begin >= within.begin && covered.range.begin < within.end;
    if (is_within && std::exchange(covered.is_stale, false)) stale.push_back(covered.range);
  }
  return stale;
}

}  // namespace onebit
