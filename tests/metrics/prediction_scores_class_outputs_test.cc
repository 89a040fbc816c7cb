#include "onebit/ground/metrics/prediction_scores.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

namespace onebit::metrics {
namespace {

using ::testing::DoubleNear;
using ::testing::ElementsAre;

TEST(ClassOutputs, Softmax) {
  const double e = std::exp(1.0);
  EXPECT_THAT(softmax(std::vector<float>{0, 1, -200}),
              ElementsAre(DoubleNear(1 / (1 + e), 1e-15), DoubleNear(e / (1 + e), 1e-15),
                          DoubleNear(0, 1e-80)));
  EXPECT_THAT(softmax(std::vector<float>{900, 900}), ElementsAre(0.5, 0.5));
}

TEST(ClassOutputs, TheFirstOfEqualClasses) {
  EXPECT_EQ(best_class(std::vector<float>{1, 3, 3}), 1);
}

TEST(ClassOutputs, CrossEntropyWithoutOverflow) {
  EXPECT_EQ(cross_entropy(std::vector<float>{800, -800}, 1), 1600);
  EXPECT_DOUBLE_EQ(cross_entropy(std::vector<float>{1, 1, 1}, 2), std::log(3.0));
}

}  // namespace
}  // namespace onebit::metrics
