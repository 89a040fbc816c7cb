#include "onebit/apps/squad/context_words.h"

#include <gtest/gtest.h>

namespace onebit::squad {
namespace {

TEST(ContextWindows, CoverTheParagraph) {
  EXPECT_TRUE(context_windows(0, 10, 5).empty());
  EXPECT_EQ(context_windows(10, 10, 5), (std::vector<ContextWindow>{{0, 10}}));
  EXPECT_EQ(context_windows(12, 10, 5), (std::vector<ContextWindow>{{0, 10}, {5, 7}}));
  EXPECT_EQ(context_windows(5, 2, 9), (std::vector<ContextWindow>{{0, 2}, {2, 2}, {4, 1}}));
  // Both windows have two tokens to the poorer side of token 7, the first is longer.
  EXPECT_EQ(max_context_window({{0, 10}, {5, 7}}, 7), 0u);
  EXPECT_EQ(max_context_window({{0, 10}, {5, 7}}, 8), 1u);
}

}  // namespace
}  // namespace onebit::squad
