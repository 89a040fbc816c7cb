#include "onebit/ground/base/wording.h"

#include <gtest/gtest.h>

#include <vector>

namespace onebit {
namespace {

TEST(Listed, ShowsAsManyAsRequested) {
  const std::vector<std::string> names = {"a", "b", "c"};
  EXPECT_EQ(listed(names, 4), "a, b, c");
  EXPECT_EQ(listed(names, 3), "a, b, c");
  EXPECT_EQ(listed(names, 2), "a, b, ...");
  EXPECT_EQ(listed({}, 2), "");
  EXPECT_EQ(listed(std::vector<std::string>{std::string("a\0b", 3)}, 2), "a\\x00b");
}

}  // namespace
}  // namespace onebit
