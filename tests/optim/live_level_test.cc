#include "onebit/optim/live_level.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "onebit/comm/thread_communicator.h"
#include "tests/optim/memory_state.h"

namespace onebit::optim {
namespace {

using Energy = std::vector<float>;

TEST(LiveLevel, FollowsItsRule) {
  const auto world = comm::make_single_rank();
  LiveLevel level(2);
  level.observe(Energy{2, 4});
  level.observe(Energy{4, 4});
  level.start(*world);
  double expected = 1;
  for (int step = 0; step < 20; ++step) {
    level.update(Energy{22, 4});
    expected = 0.99 * expected + 0.01 * 22 / 3;  // q0 is the mean of 2 and 4
  }
  EXPECT_NEAR(level.levels()[0], expected, 1e-5);
  EXPECT_NEAR(level.levels()[1], 1, 1e-5);
  EXPECT_NEAR(level.brake(0), 1 / std::sqrt(expected), 1e-5);
}

TEST(LiveLevel, NeverSpeedsUpPastItsClamp) {
  const auto world = comm::make_single_rank();
  LiveLevel level(1);
  level.observe(Energy{1});
  level.start(*world);
  for (int step = 0; step < 2000; ++step) level.update(Energy{0});
  EXPECT_NEAR(level.brake(0), 1 / std::sqrt(0.1), 1e-5);
}

TEST(LiveLevel, QuietBlocksAreNotWithoutBound) {
  const auto world = comm::make_single_rank();
  LiveLevel level(3);
  level.observe(Energy{3, 3, 0});
  level.start(*world);
  level.update(Energy{3, 3, 3});
  // A tenth of the mean over the blocks that had a gradient.
  EXPECT_NEAR(level.levels()[2], 0.99 + 0.01 * 10, 1e-5);
}

TEST(LiveLevel, WithoutObservationsTheFirstGradientIsTheReference) {
  const auto world = comm::make_single_rank();
  LiveLevel level(2);
  level.start(*world);
  level.update(Energy{5, 0});
  level.update(Energy{5, 0});
  EXPECT_FLOAT_EQ(level.levels()[0], 1);
  EXPECT_FLOAT_EQ(level.levels()[1], 1);
  level.update(Energy{5, 7});
  EXPECT_FLOAT_EQ(level.levels()[1], 1);
}

TEST(LiveLevel, RanksAgreeOnTheReference) {
  comm::run_thread_world(2, [](comm::Communicator& communicator) {
    LiveLevel level(1);
    level.observe(Energy{communicator.rank() == 0 ? 1.0f : 3.0f});
    level.start(communicator);
    level.update(Energy{4});
    EXPECT_NEAR(level.levels()[0], 0.99 + 0.01 * 2, 1e-6);
  });
}

TEST(LiveLevel, ReferenceOfOtherRanksIsAveraged) {
  std::vector<MemoryState> saved(2);
  for (int rank = 0; rank < 2; ++rank) {
    LiveLevel level(1);
    level.observe(Energy{rank == 0 ? 1.0f : 3.0f});
    level.save(saved[static_cast<size_t>(rank)], false);
  }
  const auto world = comm::make_single_rank();
  LiveLevel level(1);
  level.load(MemoryReader(saved), false, 0, 1);
  level.start(*world);
  level.update(Energy{4});
  EXPECT_NEAR(level.levels()[0], 0.99 + 0.01 * 2, 1e-6);
}

TEST(LiveLevel, WokenEntriesJoinAtTheTypicalReference) {
  const auto world = comm::make_single_rank();
  LiveLevel level(2);
  level.observe(Energy{2, 6});
  level.start(*world);
  level.join(0, 100, 300);  // (100 * 2 + 300 * 4) / 400
  level.update(Energy{7, 6});
  EXPECT_NEAR(level.levels()[0], 0.99 + 0.01 * 7 / 3.5, 1e-6);
}

}  // namespace
}  // namespace onebit::optim
