// The model's output for every window: for each token, its logits as first and as last token of the
// answer.
#pragma once

#include <span>
#include <vector>

#include "onebit/apps/squad/features.h"

namespace onebit::squad {

class SpanLogits {
 public:
  // Starts with zeros. Keeps no reference to `features`.
  explicit SpanLogits(const Features& features) {
    begins_.push_back(0);
    for (const Window& window : features.windows()) {
      begins_.push_back(begins_.back() + 2 * static_cast<size_t>(features.length(window)));
    }
    values_.resize(begins_.back());
  }

  // [tokens of the window, 2]: start, end.
  std::span<float> of(size_t window) {
    return std::span(values_).subspan(begins_[window], begins_[window + 1] - begins_[window]);
  }
  std::span<const float> of(size_t window) const {
    return std::span(values_).subspan(begins_[window], begins_[window + 1] - begins_[window]);
  }
  // The logits of all windows, one after the other.
  std::span<float> all() { return values_; }

 private:
  std::vector<size_t> begins_;  // [windows + 1]
  std::vector<float> values_;
};

}  // namespace onebit::squad
