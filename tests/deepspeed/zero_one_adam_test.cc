// The golden trace of DeepSpeed's 0/1 Adam: two ranks, one tensor of 4 elements, made with a model
// of the algorithm in double precision.
#include "tests/deepspeed/zero_one_adam.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <string>

#include "onebit/exchange/one_bit/zero_one_adam.h"
#include "tests/deepspeed/golden_rank.h"
#include "tests/optim/trial.h"

namespace onebit::deepspeed {
namespace {

using optim::GradientNeed;
using optim::Phase;

ZeroOneAdamOptions golden_options() {
  return {.adam = {.learning_rate = kGoldenRate, .weight_decay = kGoldenDecay},
          .variance_freeze = 6,
          .variance_scaler = 2,
          .local_scaler = 2,
          .local_limit = 4};
}

using Rank = GoldenRank<ZeroOneAdam, ZeroOneAdamOptions>;
using Four = std::array<double, 4>;

// The values after update k: one row for all ranks, or one row for each.
const std::map<int64_t, std::vector<Four>> kTrace = {
    {3, {{.39097239, .17258458, -.017917501, -.3417332}}},
    {4, {{.36408233, .15722005, -.030144674, -.34585753}}},
    {6, {{.35241741, .11458848, -.067555855, -.40930084}}},
    {8, {{.31189246, .076092522, -.10395739, -.4436604}}},
    {9, {{.3009299, .086506209, -.11380451, -.43436567}}},
    {10,
     {{.30792204, .086970133, -.13251057, -.45752179},
      {.29559464, .098680323, -.14358366, -.44706986}}},
    {11, {{.32587263, .062812311, -.13620931, -.45551365}}}};

// Dense, at one bit, synchronized, local, and the interval after each update.
const std::string kKinds = "VVV1V1SSSLSL";
constexpr int64_t kIntervals[] = {1, 2, 2, 2, 4, 4, 1, 2, 2, 4, 4, 4};

TEST(ZeroOneAdam, GoldenTrace) {
  for (const bool per_tensor : {true, false}) {
    comm::run_thread_world(2, [per_tensor](comm::Communicator& communicator) {
      ZeroOneAdamOptions options = golden_options();
      options.scale_per_tensor = per_tensor;
      Rank rank(communicator, options, {4});
      const ZeroOneAdam& optimizer = rank.optimizer();
      for (int64_t k = 1; k <= 12; ++k) {
        const auto at = static_cast<size_t>(k - 1);
        const bool averages = optimizer.gradient_need() == GradientNeed::kAveragedOverRanks;
        EXPECT_EQ(averages, kKinds[at] == 'V') << k;
        rank.step(k);
        EXPECT_EQ(optimizer.phase(), k < 6 ? Phase::kWarmup : Phase::kCompressed) << k;
        EXPECT_EQ(optimizer.is_local(), kKinds[at] == 'L') << k;
        EXPECT_EQ(k <= 6 ? optimizer.variance_interval() : optimizer.local_interval(),
                  kIntervals[at])
            << k;
        const auto row = kTrace.find(k);
        if (row == kTrace.end()) continue;
        const auto self = static_cast<size_t>(communicator.rank());
        const Four& expected = row->second[row->second.size() == 1 ? 0 : self];
        const std::vector<float> values = rank.values();
        for (size_t i = 0; i < 4; ++i) EXPECT_NEAR(values[i], expected[i], 1e-6) << k << " " << i;
      }
    });
  }
}

TEST(ZeroOneAdam, ResumesExactly) {
  expect_exact_resume<ZeroOneAdam>(golden_options(), {4}, 13);
}

TEST(ZeroOneAdam, NotFiniteChangesNothing) {
  for (const int64_t bad : {4, 8, 10}) {
    expect_no_change_by_nan<ZeroOneAdam>(golden_options(), {4}, bad);
  }
}

// Values of all ranks after a long run that ends with a synchronization.
std::vector<std::vector<float>> ends_of(optim::ZeroOneOptions schedule, bool ours) {
  // All of one size: a scale for a whole tensor makes updates of small gradients too large.
  const optim::Gradient even = [](int rank, int64_t step, int64_t place) {
    return optim::noisy_gradient(rank, step, place - place % 5);
  };
  const optim::TrialOptions options{
      .optimizer = optim::zero_one_adam_recipe({.schedule = schedule}), .gradient = even};
  return optim::on_ranks(4, options, [&](optim::Trial& trial) {
    if (!ours) {
      trial.replace_optimizer(std::make_unique<ZeroOneAdam>(
          ZeroOneAdamOptions{.variance_freeze = schedule.variance_freeze,
                             .variance_scaler = schedule.variance_scaler,
                             .local_scaler = schedule.local_scaler,
                             .local_limit = schedule.local_limit},
          trial.table(), trial.communicator()));
    }
    trial.steps(ours ? 200 : 199);  // DeepSpeed numbers updates from 2
    return trial.values();
  });
}

// DeepSpeed returns to the last synchronization by subtracting its movement, in f32.
TEST(ZeroOneAdam, RanksDriftApartByRoundingAndOursDoNot) {
  const optim::ZeroOneOptions schedule{
      .variance_freeze = 40, .variance_scaler = 8, .local_scaler = 10, .local_limit = 4};
  const auto theirs = ends_of(schedule, false), ours = ends_of(schedule, true);
  EXPECT_NE(theirs[0], theirs[1]);
  for (size_t i = 0; i < theirs[0].size(); ++i) {
    EXPECT_NEAR(theirs[0][i], theirs[1][i], 1e-4 * std::max(1.0f, std::abs(theirs[0][i]))) << i;
  }
  for (const auto& values : ours) EXPECT_EQ(values, ours[0]);
}

}  // namespace
}  // namespace onebit::deepspeed
