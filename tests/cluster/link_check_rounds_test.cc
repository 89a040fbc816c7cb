#include "onebit/program/cluster/link_check.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

namespace onebit::cluster {
namespace {

TEST(LinkRounds, HaveEveryPairOnceAndNobodyTwiceAtATime) {
  for (int count = 2; count <= 17; ++count) {
    std::set<std::pair<int, int>> all;
    for (const auto& round : rounds_of_pairs(count)) {
      std::set<int> busy;
      for (const auto& [one, other] : round) {
        EXPECT_TRUE(busy.insert(one).second && busy.insert(other).second) << count;
        EXPECT_TRUE(all.insert(std::minmax(one, other)).second) << count;
        EXPECT_TRUE(one >= 0 && other >= 0 && one < count && other < count) << count;
      }
    }
    EXPECT_EQ(static_cast<int>(all.size()), count * (count - 1) / 2);
    EXPECT_LE(static_cast<int>(rounds_of_pairs(count).size()), count);
  }
}

}  // namespace
}  // namespace onebit::cluster
