// Inputs for tests of compression.
#pragma once

#include <cstdint>
#include <vector>

#include "onebit/ground/base/philox.h"

namespace onebit::compress::trials {

// Symmetric around zero, of sizes that differ by orders of magnitude between regions, with exact
// zeros: a function of (rank, step) alone.
inline std::vector<float> values_of(int rank, int step, int64_t elements) {
  RandomSequence random(5, static_cast<uint64_t>(rank), static_cast<uint64_t>(step));
  std::vector<float> values;
  values.reserve(static_cast<size_t>(elements));
  constexpr double kSizes[] = {1e-5, 1e-4, 1e-3, 1e-2, 1e-1, 1, 10};
  for (int64_t i = 0; i < elements; ++i) {
    const double value = kSizes[i / 1500 % 7] * (random.next_u32() * 0x1p-31 - 1);
    values.push_back(i % 97 == 0 ? 0.0f : static_cast<float>(value));
  }
  return values;
}

// Some rows of 64 entries, single entries, and the whole second block.
inline std::vector<uint8_t> still_of(int64_t elements) {
  std::vector<uint8_t> still(static_cast<size_t>((elements + 7) / 8));
  for (int64_t i = 0; i < elements; ++i) {
    if (i / 64 % 5 == 1 || i % 331 == 0 || i / 2048 == 1) {
      still[static_cast<size_t>(i / 8)] =
          static_cast<uint8_t>(still[static_cast<size_t>(i / 8)] | (1u << (i % 8)));
    }
  }
  return still;
}

}  // namespace onebit::compress::trials
