#include "onebit/math/kernels/for_parts.h"

#include <gtest/gtest.h>

#include <vector>

namespace onebit::kernels {
namespace {

TEST(ForParts, EachItemIsInOnePart) {
  Context context = Context::cpu(4);
  for (const int64_t count : {0, 1, 3, 10, 1000}) {
    for (const int64_t grain : {0, 1, 3, 400}) {
      std::vector<int64_t> part_of(static_cast<size_t>(count), -1);
      for_parts(context, count, grain, [&](int64_t part, int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i) part_of[static_cast<size_t>(i)] = part;
      });
      const int64_t parts = part_count(context, count, grain);
      for (size_t i = 0; i < part_of.size(); ++i) {
        EXPECT_TRUE(0 <= part_of[i] && part_of[i] < parts) << i;
        EXPECT_TRUE(i == 0 || part_of[i - 1] <= part_of[i]) << i;
      }
    }
  }
}

TEST(ForParts, CountFollowsGrainAndThreads) {
  Context context = Context::cpu(4);
  EXPECT_EQ(part_count(context, 0, 1), 1);
  EXPECT_EQ(part_count(context, 3, 1), 3);
  EXPECT_EQ(part_count(context, 100, 1), 4);
  EXPECT_EQ(part_count(context, 100, 50), 2);
  EXPECT_EQ(grain_for(1), 16384);
  EXPECT_EQ(grain_for(1 << 20), 1);
}

}  // namespace
}  // namespace onebit::kernels
