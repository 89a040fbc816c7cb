#include "onebit/ground/metrics/findings.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>

#include "onebit/ground/base/philox.h"

namespace onebit::metrics {
namespace {

using Draw = std::function<double(RandomSequence&)>;

// Losses as of small batches: their standard deviation is 70 % of the mean.
double gamma(RandomSequence& random) {
  return 0.35 * -std::log((1 - random.uniform()) * (1 - random.uniform())) / 2;
}

double uniform(RandomSequence& random) {
  return 0.35 * (1 + 0.7 * std::sqrt(3.0) * (2 * random.uniform() - 1));
}

// Nearly always small, sometimes large.
double spikes(RandomSequence& random) {
  const double size = random.uniform();
  return 0.02 + (random.uniform() < 0.08 ? 2 * size : 0);
}

Series series(
    uint64_t seed, int steps, const Draw& draw,
    const std::function<double(int)>& factor = [](int) { return 1.0; }) {
  RandomSequence random(seed, 1, 1);
  Series made;
  for (int step = 1; step <= steps; ++step) {
    made.push_back({static_cast<double>(step), draw(random) * factor(step)});
  }
  return made;
}

TEST(FindRise, FindsNoneInFourThousandStationarySeries) {
  for (const auto& draw : {gamma, uniform, spikes}) {
    int found = 0;
    for (uint64_t seed = 0; seed < 4000; ++seed) {
      found += find_rise(series(seed, seed % 2 == 0 ? 300 : 1000, draw)).has_value();
    }
    EXPECT_LE(found, 40);  // 1 %
  }
}

TEST(FindRise, FindsNoneInALossThatFalls) {
  for (uint64_t seed = 0; seed < 200; ++seed) {
    EXPECT_FALSE(find_rise(
        series(seed, 400, gamma, [](int step) { return 1 + 5 * std::exp(-step / 80.0); })));
  }
}

TEST(FindRise, FindsADivergence) {
  int found = 0;
  for (uint64_t seed = 0; seed < 200; ++seed) {
    const auto rise =
        find_rise(series(seed, 400, gamma, [](int step) { return step > 300 ? 2.5 : 1.0; }));
    if (!rise) continue;
    ++found;
    EXPECT_LT(rise->least_step, 301);
    EXPECT_GT(rise->end, 0.5);
  }
  EXPECT_GE(found, 196);
  // A slow rise after the middle, and a jump of the last twentieth.
  const auto slow = [](int step) { return step > 200 ? 1 + (step - 200) / 60.0 : 1.0; };
  EXPECT_TRUE(find_rise(series(1, 400, uniform, slow)));
  EXPECT_TRUE(find_rise(series(1, 400, uniform, [](int step) { return step > 380 ? 8.0 : 1.0; })));
}

TEST(FindRise, WantsEnoughOfASeries) {
  const auto jump = [](int step) { return step > 90 ? 9.0 : 1.0; };
  EXPECT_FALSE(find_rise(series(1, 199, uniform, jump)));
  EXPECT_FALSE(find_rise({}));
  EXPECT_TRUE(find_rise(series(1, 200, uniform, jump)));
}

// Without noise a rise of a tenth decides alone.
TEST(FindRise, IsOfMoreThanATenth) {
  const Draw even = [](RandomSequence&) { return 2.0; };
  EXPECT_FALSE(find_rise(series(1, 400, even, [](int step) { return step > 200 ? 1.09 : 1.0; })));
  EXPECT_TRUE(find_rise(series(1, 400, even, [](int step) { return step > 200 ? 1.11 : 1.0; })));
}

}  // namespace
}  // namespace onebit::metrics
