#include "onebit/apps/embed/encoder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace onebit::embed {
namespace {

TEST(EncodingProgress, CountsTexts) {
  EncodingProgress progress;
  EXPECT_EQ(progress.text(), "0 texts, 0.0 per second");
  progress.add(3);
  progress.add(4);
  EXPECT_THAT(progress.text(), testing::StartsWith("7 texts, "));
}

}  // namespace
}  // namespace onebit::embed
