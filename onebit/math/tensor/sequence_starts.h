// The first rows of the sequences of a packed batch.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>

#include "onebit/math/tensor/view.h"

namespace onebit {

// Ascending from 0 to the number of rows: sequence s has rows [starts[s], starts[s + 1]). Device
// and host hold the same numbers.
struct SequenceStarts {
  ConstView device;               // i32 [batch + 1]
  std::span<const int32_t> host;  // batch + 1

  // Tokens of the longest sequence.
  int64_t longest() const {
    int64_t most = 0;
    for (size_t i = 1; i < host.size(); ++i) most = std::max(most, int64_t{host[i]} - host[i - 1]);
    return most;
  }
};

}  // namespace onebit
