// Where the sequences of a packed batch begin.
#pragma once

#include <cstdint>
#include <span>

#include "onebit/tensor/view.h"

namespace onebit {

// From 0, ascending, to rows: sequence s is rows [starts[s], starts[s + 1]). The same numbers on
// the device and on the host.
struct SequenceStarts {
  ConstView device;               // i32 [batch + 1]
  std::span<const int32_t> host;  // batch + 1
};

}  // namespace onebit
