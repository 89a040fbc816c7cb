#include "onebit/ground/metrics/prediction_scores.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

namespace onebit::metrics {
namespace {

// The figures themselves are compared in tests/classify/classify_scores_test.cc.
TEST(Confusion, CountsEveryPair) {
  const std::vector<int32_t> truth = {0, 0, 0, 2, 2}, predicted = {0, 2, 2, 2, 0};
  const Confusion confusion(4, truth, predicted);
  EXPECT_EQ(confusion.count(0, 0), 1);
  EXPECT_EQ(confusion.count(0, 2), 2);
  EXPECT_EQ(confusion.count(2, 0), 1);
  EXPECT_EQ(confusion.count(1, 1), 0);
  const LabelCounts two = confusion.of_class(2);
  EXPECT_EQ(two.hits, 1);
  EXPECT_EQ(two.misses, 1);
  EXPECT_EQ(two.false_alarms, 2);
  EXPECT_EQ(confusion.of_classes().size(), 2u);  // the others never occur
}

TEST(Confusion, LargestErrorsComeFirst) {
  const std::vector<int32_t> truth = {0, 1, 1, 2, 2, 2}, predicted = {0, 0, 0, 1, 0, 1};
  const auto errors = Confusion(3, truth, predicted).largest_errors(2);
  ASSERT_EQ(errors.size(), 2u);
  EXPECT_EQ(errors[0].truth, 1);
  EXPECT_EQ(errors[0].predicted, 0);
  EXPECT_EQ(errors[0].examples, 2);
  EXPECT_EQ(errors[1].truth, 2);
  EXPECT_EQ(errors[1].predicted, 1);
  EXPECT_TRUE(Confusion(2, {}, {}).largest_errors(5).empty());
}

// A dense matrix would have 10^12 numbers.
TEST(Confusion, OfAMillionClasses) {
  const std::vector<int32_t> truth = {999'999, 3}, predicted = {999'999, 999'999};
  const Confusion confusion(1'000'000, truth, predicted);
  EXPECT_EQ(confusion.classes(), 1'000'000);
  EXPECT_EQ(confusion.count(3, 999'999), 1);
  EXPECT_EQ(confusion.of_class(999'999).false_alarms, 1);
  EXPECT_EQ(confusion.accuracy(), 0.5);
}

// A million examples: products of counts stay exact enough.
TEST(Confusion, MatthewsOfManyExamples) {
  std::vector<int32_t> truth(1000000), predicted(truth.size());
  for (size_t i = 0; i < truth.size(); ++i) {
    truth[i] = static_cast<int32_t>(i % 2);
    predicted[i] = static_cast<int32_t>(i % 4 == 0 ? 1 : i % 2);
  }
  // 250,000 of class 0 are predicted as 1: (tp tn - fp fn) / sqrt(product of the four margins).
  const double expected = (500000.0 * 250000.0) / std::sqrt(750000.0 * 500000 * 500000 * 250000);
  EXPECT_NEAR(Confusion(2, truth, predicted).matthews(), expected, 1e-12);
}

TEST(Confusion, OfNothing) {
  const Confusion confusion(2, {}, {});
  EXPECT_EQ(confusion.accuracy(), 0);
  EXPECT_EQ(confusion.matthews(), 0);
}

}  // namespace
}  // namespace onebit::metrics
