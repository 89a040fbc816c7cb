#include "onebit/math/tensor/parameter_table.h"

#include <gtest/gtest.h>

namespace onebit {
namespace {

using Ranges = std::vector<Range>;

TEST(StaleGradients, NothingIsStaleBeforeAnUpdateBegins) {
  StaleGradients stale;
  stale.cover(3, {32, 48});
  EXPECT_FALSE(stale.take(3));
  EXPECT_EQ(stale.take(Range{0, 64}), Ranges{});
}

TEST(StaleGradients, WhatIsNotCoveredIsClearedAtOnce) {
  StaleGradients stale;
  EXPECT_EQ(stale.begin_update(64), (Ranges{{0, 64}}));
  stale.cover(3, {32, 48});  // in any order
  stale.cover(1, {0, 16});
  stale.cover(2, {16, 32});
  EXPECT_EQ(stale.begin_update(64), (Ranges{{48, 64}}));
  EXPECT_EQ(stale.begin_update(48), Ranges{});
}

TEST(StaleGradients, TheFirstPassOverwrites) {
  StaleGradients stale;
  stale.cover(1, {0, 16});
  stale.cover(3, {32, 48});
  for (int update = 0; update < 2; ++update) {
    stale.begin_update(64);
    EXPECT_FALSE(stale.take(2));
    EXPECT_TRUE(stale.take(3));
    EXPECT_FALSE(stale.take(3));
  }
}

TEST(StaleGradients, ACallerWhoClearsThemFindsWhatItHasWritten) {
  StaleGradients stale;
  stale.leave_to_caller();
  stale.cover(1, {0, 16});
  EXPECT_EQ(stale.begin_update(64), Ranges{});
  EXPECT_FALSE(stale.take(1));
  EXPECT_EQ(stale.take(Range{0, 64}), Ranges{});
}

TEST(StaleGradients, WhatNoPassHasWrittenIsCleared) {
  StaleGradients stale;
  stale.cover(1, {0, 16});
  stale.cover(2, {16, 32});
  stale.cover(3, {32, 48});
  stale.begin_update(64);
  EXPECT_TRUE(stale.take(2));
  EXPECT_EQ(stale.take(Range{16, 64}), (Ranges{{32, 48}}));
  EXPECT_EQ(stale.take(Range{0, 64}), (Ranges{{0, 16}}));
  EXPECT_EQ(stale.take(Range{0, 64}), Ranges{});
  EXPECT_FALSE(stale.take(1));
}

}  // namespace
}  // namespace onebit
