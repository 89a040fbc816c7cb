#include "onebit/ground/metrics/prediction_scores.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace onebit::metrics {
namespace {

using ::testing::ElementsAre;

// The figures themselves are compared in classify_scores_test.cc.
TEST(Correlation, EqualNumbersShareTheirRanks) {
  EXPECT_THAT(mean_ranks(std::vector<double>{3, 1, 3, 2, 3}), ElementsAre(4, 1, 4, 2, 4));
  EXPECT_THAT(mean_ranks(std::vector<double>{}), ElementsAre());
}

TEST(Correlation, IsOneOfStraightLines) {
  const std::vector<double> x = {1, 2, 4, 8}, up = {-3, -1, 3, 11}, down = {9, 8, 6, 2};
  EXPECT_DOUBLE_EQ(pearson_correlation(x, up), 1);
  EXPECT_DOUBLE_EQ(pearson_correlation(x, down), -1);
  const std::vector<double> curve = {0, 1, 100, 101};
  EXPECT_DOUBLE_EQ(spearman_correlation(x, curve), 1);
  EXPECT_LT(pearson_correlation(x, curve), 1);
}

TEST(Correlation, FarFromZeroItKeepsItsDigits) {
  std::vector<double> x, y;
  for (int i = 0; i < 100; ++i) {
    x.push_back(1e8 + i);
    y.push_back(-1e8 + (i * 37) % 100);
  }
  std::vector<double> small_x, small_y;
  for (int i = 0; i < 100; ++i) {
    small_x.push_back(i);
    small_y.push_back((i * 37) % 100);
  }
  EXPECT_NEAR(pearson_correlation(x, y), pearson_correlation(small_x, small_y), 1e-12);
}

TEST(Correlation, OfConstantsIsNoNumber) {
  const std::vector<double> constant = {0.1, 0.1, 0.1}, other = {1, 2, 3}, one = {1};
  EXPECT_TRUE(std::isnan(pearson_correlation(constant, other)));
  EXPECT_TRUE(std::isnan(spearman_correlation(other, constant)));
  EXPECT_TRUE(std::isnan(pearson_correlation(one, one)));
}

// A damaged model's outputs: their ranks would be 1, 2, 3.
TEST(Correlation, OfWhatIsNoNumberIsNone) {
  const std::vector<double> damaged(3, std::numeric_limits<double>::quiet_NaN()), other = {1, 2, 3};
  EXPECT_TRUE(std::isnan(spearman_correlation(damaged, other)));
  EXPECT_TRUE(std::isnan(pearson_correlation(damaged, other)));
}

}  // namespace
}  // namespace onebit::metrics
