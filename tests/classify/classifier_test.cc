#include "onebit/apps/classify/classifier.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

namespace onebit::classify {
namespace {

using ::testing::DoubleNear;
using ::testing::ElementsAre;

TEST(Predictions, Probabilities) {
  const std::vector<float> outputs = {0, 1, -200};
  const double e = std::exp(1.0);
  EXPECT_THAT(activated(usual_activation(Problem::kSingleLabel), outputs),
              ElementsAre(DoubleNear(1 / (1 + e), 1e-15), DoubleNear(e / (1 + e), 1e-15),
                          DoubleNear(0, 1e-80)));
  EXPECT_THAT(activated(usual_activation(Problem::kMultiLabel), outputs),
              ElementsAre(0.5, DoubleNear(e / (1 + e), 1e-15), DoubleNear(0, 1e-80)));
  EXPECT_THAT(activated(usual_activation(Problem::kRegression), outputs), ElementsAre(0, 1, -200));
}

TEST(Predictions, LabelsAboveTheThreshold) {
  const std::vector<float> outputs = {0, 1, -1};
  EXPECT_THAT(present_labels(outputs, 0.5), ElementsAre(1));
  EXPECT_THAT(present_labels(outputs, 0.2), ElementsAre(0, 1, 2));
  EXPECT_THAT(present_labels(outputs, 0.9), ElementsAre());
}

// The losses of real outputs are compared in classify_scores_test.cc.
TEST(Predictions, LossesWithoutOverflow) {
  const std::vector<float> outputs = {800, -800};
  EXPECT_EQ(loss_of({.outputs = 2, .classes = {1}}, 0, outputs), 1600);
  EXPECT_EQ(loss_of({.problem = Problem::kMultiLabel, .outputs = 2, .values = {0, 1}}, 0, outputs),
            800);
  EXPECT_EQ(
      loss_of({.problem = Problem::kRegression, .outputs = 2, .values = {801, -803}}, 0, outputs),
      5);
}

}  // namespace
}  // namespace onebit::classify
