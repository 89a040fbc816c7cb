#include "onebit/math/updates/onebit_adam_update.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "tests/updates/onebit_adam_update_fixture.h"

namespace onebit::updates {
namespace {

class OnebitFreezeTest : public OnebitUpdateTest {};

bool bit_of(const std::vector<uint8_t>& bitmap, size_t i) {
  return (bitmap[i / 8] >> (i % 8) & 1) != 0;
}

TEST_P(OnebitFreezeTest, Freeze) {
  const auto is_tiny = [](size_t i) { return i % 11 == 5 && !stands_still(i); };
  Values momenta = random_values(1, 1), variance = random_variances(2);
  for (size_t i = 0; i < variance.size(); ++i) {
    if (stands_still(i)) variance[i] = 0;
    if (is_tiny(i)) variance[i] = 1e-44f;  // such an entry has moved, so it is not still
  }
  const Values m = momenta, v = variance;
  std::vector<uint8_t> still(kElements / 8, 0xFF);
  freeze({.momentum = view_of(momenta),
          .variance = view_of(variance),
          .still = View::of(still.data(), {kElements / 8}),
          .epsilon = 1e-6,
          .variance_factor = 4});
  for (size_t i = 0; i < m.size(); ++i) {
    ASSERT_EQ(bit_of(still, i), stands_still(i)) << i;
    if (stands_still(i)) {
      ASSERT_EQ(variance[i], 0) << i;
      ASSERT_EQ(momenta[i], 0) << i;
      continue;
    }
    const double expected = is_tiny(i) ? double{kSmallestVariance} : 4.0 * v[i];
    const double x = m[i] / (std::sqrt(expected) + 1e-6);
    ASSERT_NEAR(variance[i], expected, is_tiny(i) ? 0 : kRounding * expected) << i;
    ASSERT_NEAR(momenta[i], x, 4 * kRounding * std::abs(x)) << i;
  }
}

ONEBIT_ON_EVERY_DEVICE(OnebitFreezeTest);

}  // namespace
}  // namespace onebit::updates
