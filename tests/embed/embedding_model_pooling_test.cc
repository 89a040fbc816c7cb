#include "onebit/apps/embed/embedding_model.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "tests/base/message_of.h"

namespace onebit::embed {
namespace {

using formats::SentencePooling;
using testing::ElementsAre;
using testing::FloatNear;
using testing::HasSubstr;
using enum formats::SentencePooling;

class PoolingTest : public ::testing::Test {
 protected:
  std::vector<float> pooled(const std::vector<SentencePooling>& modes,
                            const std::vector<int32_t>& left_out = {}) {
    std::vector<float> vectors(2 * modes.size() * 2);
    pool_sequences(context_, {.rows = rows_.data(),
                              .hidden = 2,
                              .starts = starts_,
                              .left_out = left_out,
                              .modes = modes,
                              .vectors = vectors.data()});
    return vectors;
  }

  Context context_ = Context::cpu(2);
  // Sequences of three tokens and of one.
  std::vector<float> rows_ = {1, -2, 3, 4, -5, 1, 7, 8};
  std::vector<int32_t> starts_ = {0, 3, 4};
};

TEST_F(PoolingTest, EachModeIsWhatItsNameSays) {
  EXPECT_THAT(pooled({kFirst}), ElementsAre(1, -2, 7, 8));
  EXPECT_THAT(pooled({kLast}), ElementsAre(-5, 1, 7, 8));
  EXPECT_THAT(pooled({kMax}), ElementsAre(3, 4, 7, 8));
  const float third = 1.0F / 3;
  EXPECT_THAT(pooled({kMean}), ElementsAre(FloatNear(-third, 1e-6F), 1, 7, 8));
  const float root = std::sqrt(3.0F);
  EXPECT_THAT(pooled({kMeanSqrtLength}),
              ElementsAre(FloatNear(-1 / root, 1e-6F), FloatNear(3 / root, 1e-6F), 7, 8));
  // (1 + 2 * 3 - 3 * 5) / 6, (-2 + 2 * 4 + 3) / 6
  EXPECT_THAT(pooled({kWeightedMean}),
              ElementsAre(FloatNear(-4 * third, 1e-6F), FloatNear(1.5F, 1e-6F), 7, 8));
  EXPECT_THAT(pooled({kLast, kFirst}), ElementsAre(-5, 1, 1, -2, 7, 8, 7, 8));
}

TEST_F(PoolingTest, TokensOfAPromptDoNotCount) {
  EXPECT_THAT(pooled({kFirst}, {1}), ElementsAre(3, 4, 7, 8));
  EXPECT_THAT(pooled({kLast}, {2, 0}), ElementsAre(-5, 1, 7, 8));
  EXPECT_THAT(pooled({kMax}, {2}), ElementsAre(-5, 1, 7, 8));
  EXPECT_THAT(pooled({kMean}, {1}), ElementsAre(-1, 2.5, 7, 8));
  // The weights stay 2 and 3.
  EXPECT_THAT(pooled({kWeightedMean}, {1}),
              ElementsAre(FloatNear(-1.8F, 1e-6F), FloatNear(2.2F, 1e-6F), 7, 8));
  EXPECT_THAT(message_of([&] { pooled({kMean}, {0, 1}); }), HasSubstr("none is left"));
}

TEST_F(PoolingTest, WhatIsNotANumberShows) {
  for (const size_t place : {0U, 2U, 4U}) {
    rows_ = {1, -2, 3, 4, -5, 1, 7, 8};
    rows_[place] = std::numeric_limits<float>::quiet_NaN();
    EXPECT_TRUE(std::isnan(pooled({kMax})[0])) << place;
  }
}

}  // namespace
}  // namespace onebit::embed
