// Values for the tests of optimizers' updates.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "onebit/ground/base/philox.h"
#include "onebit/math/tensor/view.h"

namespace onebit::updates {

using Values = std::vector<float>;

// Evenly spread over -scale to scale.
inline Values random_values(uint64_t seed, uint64_t stream, size_t count, double scale) {
  RandomSequence random(seed, stream, 0);
  Values values(count);
  for (float& one : values) one = static_cast<float>(scale * (2 * random.uniform() - 1));
  return values;
}

inline View view_of(Values& values) {
  return View::of(values.data(), {static_cast<int64_t>(values.size())});
}

}  // namespace onebit::updates
