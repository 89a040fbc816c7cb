// The choice of the micro-batch that is timed before the first step.
#include "onebit/training/training/device_batch.h"

#include <gtest/gtest.h>

#include <array>

#include "onebit/exchange/comm/thread_communicator.h"

namespace onebit::training {
namespace {

TEST(TypicalMicroStep, ComesNearTheMeanOfOneRank) {
  EXPECT_EQ(typical_micro_step(std::array<int64_t, 4>{100, 400, 310, 290}, 1, 1), 3)
      << "the mean is 275";
}

// A step lasts as long as its largest micro-batch.
TEST(TypicalMicroStep, TakesTheSlowestRankOfAStep) {
  constexpr std::array<int64_t, 8> kRows = {400, 400,   // the mean of all, but no rank is slow
                                            500, 300,   // the mean of all slowest
                                            300, 500,   // again: the first one wins
                                            600, 200};  // the slowest
  EXPECT_EQ(typical_micro_step(kRows, 2, 1), 1);
}

TEST(TypicalMicroStep, LooksAtAllRanksToo) {
  // All are equally slow. In the mean a rank has 350 rows.
  constexpr std::array<int64_t, 6> kRows = {400, 400, 400, 200, 400, 300};
  EXPECT_EQ(typical_micro_step(kRows, 2, 1), 2);
}

// A rank's excess in one micro-step may be balanced by the next, because ranks wait once per step.
TEST(TypicalMicroStep, WaitsOnceAStep) {
  constexpr std::array<int64_t, 8> kRows = {500, 300, 300, 500, 400, 400, 440, 360};
  EXPECT_EQ(typical_micro_step(kRows, 2, 1), 3) << "the slowest have 460 in the mean";
  EXPECT_EQ(typical_micro_step(kRows, 2, 2), 2) << "the slowest have 410 in the mean";
}

TEST(TypicalMicroStep, MayHaveNothingButEmptyBatches) {
  EXPECT_EQ(typical_micro_step(std::array<int64_t, 4>{}, 2, 1), 0);
  EXPECT_EQ(typical_micro_step(std::array<int64_t, 4>{0, 0, 0, 0}, 2, 1), 0);
}

TEST(TypicalMicroStep, IsTheSameOnAllRanks) {
  comm::run_thread_world(3, [](comm::Communicator& communicator) {
    int64_t asked = 0;
    const auto rows_of = [&](int64_t index) {
      ++asked;
      return index == 21 ? 100 + 10 * communicator.rank() : index % 2 == 0 ? 0 : 240;
    };
    EXPECT_EQ(typical_micro_step(rows_of, 3, communicator), 21);
    EXPECT_EQ(asked, 30) << "whole steps";
    asked = 0;
    typical_micro_step(rows_of, 1000, communicator);
    EXPECT_EQ(asked, 32);
  });
}

}  // namespace
}  // namespace onebit::training
