#include "onebit/ground/base/wording.h"

#include <gtest/gtest.h>

namespace onebit {
namespace {

TEST(NearestWord, FindsTypingMistakesAndNothingElse) {
  const std::vector<std::string> known = {"lr", "weight_decay", "freeze_step", "betas"};
  EXPECT_EQ(nearest_word("weigth_decay", known), "weight_decay");
  EXPECT_EQ(nearest_word("freeze_steps", known), "freeze_step");
  EXPECT_EQ(nearest_word("lrr", known), "lr");
  EXPECT_EQ(nearest_word("zq", known), "");
  EXPECT_EQ(nearest_word("activation", known), "");
  EXPECT_EQ(nearest_word("lr", {}), "");
}

}  // namespace
}  // namespace onebit
