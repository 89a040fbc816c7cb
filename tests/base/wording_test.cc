#include "onebit/ground/base/wording.h"

#include <gtest/gtest.h>

namespace onebit {
namespace {

TEST(Counted, KnowsOneFromMany) {
  EXPECT_EQ(counted(0, "rank"), "0 ranks");
  EXPECT_EQ(counted(1, "rank"), "1 rank");
  EXPECT_EQ(counted(12, "micro-step"), "12 micro-steps");
}

}  // namespace
}  // namespace onebit
