// The dropout rule of onebit/math/kernels/dropout_mask.h, implemented from its description.
#pragma once

#include <cmath>
#include <vector>

#include "onebit/ground/base/philox.h"
#include "tests/reference/matrix.h"

namespace onebit::reference {

struct DropoutRule {
  double probability = 0;
  uint64_t seed = 0;
  uint32_t site = 0;
  std::vector<uint64_t> row_keys;

  // The factor of an element: 0, or the scale.
  double factor(int64_t row, int64_t column) const {
    const auto threshold = static_cast<int64_t>(std::llround(probability * 65536));
    if (threshold == 0) return 1;
    const uint64_t row_key = row_keys[static_cast<size_t>(row)];
    const PhiloxCounter counter{{static_cast<uint32_t>(column / 16), site,
                                 static_cast<uint32_t>(row_key & 0xFFFFFFFFu),
                                 static_cast<uint32_t>(row_key >> 32)}};
    const PhiloxCounter words = philox(counter, philox_key(seed), 7);
    const int64_t lane = column % 16, partner = (lane + 8) % 16;
    int64_t value = 0;  // its binary digits, the largest first
    for (int digit = 7; digit >= 0; --digit) value = 2 * value + bit_of(words, lane, digit);
    for (int digit = 0; digit < 8; ++digit) value = 2 * value + bit_of(words, partner, digit);
    return value >= threshold ? 65536.0 / static_cast<double>(65536 - threshold) : 0;
  }

  static int64_t bit_of(const PhiloxCounter& words, int64_t lane, int digit) {
    const uint32_t word = words.word[digit / 2];
    const uint32_t half_word = digit % 2 == 0 ? word & 0xFFFFu : word >> 16;
    return half_word >> lane & 1u;
  }

  Matrix apply(Matrix x) const {
    for (int64_t i = 0; i < x.rows; ++i) {
      for (int64_t j = 0; j < x.columns; ++j) x(i, j) *= factor(i, j);
    }
    return x;
  }
};

}  // namespace onebit::reference
