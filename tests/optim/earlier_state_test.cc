#include "onebit/exchange/optim/earlier_state.h"

#include <gtest/gtest.h>

#include "onebit/ground/base/json.h"

namespace onebit::optim {
namespace {

TEST(EarlierState, IsCompleted) {
  // The number of turn 1 left last in update 11, that of turn 2 in update 3.
  EXPECT_EQ(completed_turns({}, 11, 9),
            Json({{"updates", 11}, {"left_at", {10, 11, 3, 4, 5, 6, 7, 8, 9}}}));
  EXPECT_EQ(completed_turns({}, 2, 3), Json({{"updates", 2}, {"left_at", {1, 2, 0}}}));
  EXPECT_EQ(completed_cycles({}, 25), 25);
  EXPECT_EQ(completed_sources(Json::object(), 4), 4);
}

TEST(EarlierState, WhatWasWrittenStays) {
  const Json turns = {{"updates", 7}, {"left_at", {1, 2, 3}}};
  EXPECT_EQ(completed_turns(turns, 11, 3), turns);
  EXPECT_EQ(completed_cycles(3, 25), 3);
  EXPECT_EQ(completed_sources({{"ranks", 2}}, 4), 2);
}

}  // namespace
}  // namespace onebit::optim
