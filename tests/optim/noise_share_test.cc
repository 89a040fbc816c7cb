#include "onebit/optim/noise_share.h"

#include <gtest/gtest.h>

#include <vector>

#include "onebit/comm/thread_communicator.h"
#include "tests/optim/memory_state.h"

namespace onebit::optim {
namespace {

using Energy = std::vector<float>;

// q of a rank and of the average, for a signal and noise of given mean squares.
void observe(NoiseShare& noise, double signal, double share_of_noise, int world) {
  noise.observe(Energy{static_cast<float>(signal + share_of_noise * world)},
                Energy{static_cast<float>(signal + share_of_noise)});
}

TEST(NoiseShare, IsTheShareOfNoiseInTheAverage) {
  comm::run_thread_world(4, [](comm::Communicator& communicator) {
    NoiseShare noise(1);
    for (int update = 0; update < 3; ++update) observe(noise, 3, 1, 4);
    noise.settle(communicator);
    EXPECT_NEAR(noise.shares()[0], 0.25, 1e-6);
    EXPECT_NEAR(noise.ratios(4)[0], (3.0 + 4) / (3 + 1), 1e-6);
    EXPECT_NEAR(noise.ratios(2)[0], (3.0 + 1 * 2) / (3 + 1), 1e-6);
  });
}

TEST(NoiseShare, StaysBetweenSignalAloneAndNoiseAlone) {
  comm::run_thread_world(2, [](comm::Communicator& communicator) {
    NoiseShare noise(2);
    noise.observe(Energy{10, 1}, Energy{1, 2});
    noise.settle(communicator);
    EXPECT_EQ(noise.ratios(2), (std::vector<float>{2, 1}));
  });
}

TEST(NoiseShare, RanksAgreeAndQuietBlocksTakeTheTypicalShare) {
  comm::run_thread_world(3, [](comm::Communicator& communicator) {
    NoiseShare noise(3);
    const float own = communicator.rank() == 0 ? 4.0f : 1.0f;  // 2 on average: a share of 0.5
    noise.observe(Energy{own, 1, 0}, Energy{1, 1, 0});
    noise.settle(communicator);
    EXPECT_NEAR(noise.shares()[0], 0.5, 1e-6);
    EXPECT_NEAR(noise.shares()[1], 0, 1e-6);
    EXPECT_NEAR(noise.shares()[2], 0.25, 1e-6);
  });
}

TEST(NoiseShare, NothingObservedNeverSpeedsUp) {
  comm::run_thread_world(2, [](comm::Communicator& communicator) {
    NoiseShare noise(1);
    noise.settle(communicator);
    EXPECT_EQ(noise.ratios(2), std::vector<float>{1});
  });
  const auto one = comm::make_single_rank();
  NoiseShare noise(1);
  noise.observe(Energy{5}, Energy{5});
  noise.settle(*one);
  EXPECT_EQ(noise.ratios(8), std::vector<float>{1});
}

TEST(NoiseShare, ObservationsOfOtherRanksAreForgotten) {
  std::vector<MemoryState> saved(2);
  for (auto& state : saved) {
    NoiseShare noise(1);
    observe(noise, 0, 1, 2);
    noise.save(state, false);
  }
  comm::run_thread_world(2, [&](comm::Communicator& communicator) {
    NoiseShare same(1);
    same.load(MemoryReader(saved), false, communicator.rank(), 2);
    same.settle(communicator);
    EXPECT_NEAR(same.shares()[0], 1, 1e-6);
  });
  comm::run_thread_world(3, [&](comm::Communicator& communicator) {
    NoiseShare other(1);
    other.load(MemoryReader(saved), false, communicator.rank(), 3);
    other.settle(communicator);
    EXPECT_EQ(other.shares()[0], 0);
  });
}

}  // namespace
}  // namespace onebit::optim
