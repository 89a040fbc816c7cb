#include "onebit/math/kernels/blocks.h"

#include <gtest/gtest.h>

namespace onebit::kernels {
namespace {

TEST(Blocks, CountsTheLastOneWhole) {
  EXPECT_EQ(blocks_in(0), 0);
  EXPECT_EQ(blocks_in(1), 1);
  EXPECT_EQ(blocks_in(kBlockElements), 1);
  EXPECT_EQ(blocks_in(kBlockElements + 1), 2);
  EXPECT_EQ(kSubBlocks * kSubBlockElements, kBlockElements);
}

}  // namespace
}  // namespace onebit::kernels
