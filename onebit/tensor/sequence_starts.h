// The first rows of the sequences of a packed batch.
#pragma once

#include <cstdint>
#include <span>

#include "onebit/tensor/view.h"

namespace onebit {

// Ascending from 0 to the number of rows: sequence s has rows [starts[s], starts[s + 1]). Device
// and host hold the same numbers.
struct SequenceStarts {
  ConstView device;               // i32 [batch + 1]
  std::span<const int32_t> host;  // batch + 1
};

}  // namespace onebit
