#include "onebit/data/batches/batch_stream.h"

#include <gtest/gtest.h>

#include <cmath>

#include "onebit/ground/base/error.h"

namespace onebit::batches {
namespace {

TEST(Mixture, OneSourceIsTheIdentity) {
  const Mixture mixture({3.5});
  for (const uint64_t sample : {uint64_t{0}, uint64_t{7}, uint64_t{1} << 45}) {
    EXPECT_EQ(mixture.place(sample), (Mixture::Place{0, sample}));
    EXPECT_EQ(mixture.count(0, sample), sample);
  }
}

TEST(Mixture, DealsEverySampleOnceAndEvenly) {
  const std::vector<double> weights = {1, 4, 0.5, 2.5};
  const Mixture mixture(weights);
  std::vector<uint64_t> dealt(weights.size(), 0);
  for (uint64_t sample = 0; sample < 20000; ++sample) {
    for (size_t source = 0; source < weights.size(); ++source) {
      ASSERT_EQ(mixture.count(source, sample), dealt[source]);
      const double share = static_cast<double>(sample) * weights[source] / 8;
      ASSERT_LT(std::abs(static_cast<double>(dealt[source]) - share), 4.0);
    }
    const Mixture::Place place = mixture.place(sample);
    ASSERT_EQ(place.counter, dealt[place.source]);
    ++dealt[place.source];
  }
}

TEST(Mixture, WeightsThatAddUpToNoNumberAreAnError) {
  EXPECT_EQ(Mixture({1e308}).count(0, 5), 5u);
  EXPECT_THROW(Mixture({1e308, 1e308}), Error);
}

TEST(Mixture, IsExactForHugeCounters) {
  const Mixture mixture({1, 1, 2});
  const uint64_t samples = uint64_t{1} << 60;
  uint64_t sum = 0;
  for (size_t source = 0; source < 3; ++source) sum += mixture.count(source, samples);
  EXPECT_EQ(sum, samples);
  // Shares are kept in 32 bits.
  EXPECT_NEAR(static_cast<double>(mixture.count(2, samples)) / 0x1p60, 0.5, 0x1p-32);
}

TEST(Mixture, RefusesWeightsThatMeanNothing) {
  EXPECT_THROW(Mixture(std::vector<double>()), Error);
  EXPECT_THROW(Mixture({1, 0}), Error);
  EXPECT_THROW(Mixture({1, -2}), Error);
  EXPECT_THROW(Mixture({NAN}), Error);
}

}  // namespace
}  // namespace onebit::batches
