// Ranks that are processes train to the same bits as ranks that are threads.
#include <gtest/gtest.h>

#include "onebit/exchange/one_bit/onebit_adam.h"
#include "onebit/exchange/one_bit/onebit_lamb.h"
#include "onebit/exchange/one_bit/zero_one_adam.h"
#include "tests/optim/trial.h"
#include "tests/transport/mpi_environment.h"

namespace onebit::optim {
namespace {

constexpr int64_t kFreeze = 8;

// Rows 20 on of "words" get their first gradient in the compressed phase.
float late_gradient(int rank, int64_t step, int64_t place) {
  const int64_t row = place / 96;
  if (row >= 20 && row < 48 && step < kFreeze + 5) return 0;
  return noisy_gradient(rank, step, place);
}

struct Case {
  std::shared_ptr<const OptimizerRecipe> optimizer;
  int64_t steps = 0;
};

// The last case ends between two exchanges, when ranks have different values.
std::vector<Case> cases() {
  const AdamOptions adam{.weight_decay = 0.01};
  const FreezeOptions freeze{.step = kFreeze};
  const ZeroOneOptions schedule{
      .variance_freeze = 15, .variance_scaler = kFreeze, .local_scaler = 4, .local_limit = 4};
  return {{onebit_adam_recipe({.adam = adam, .freeze = freeze}), kFreeze + 10},
          {onebit_lamb_recipe({.lamb = {.adam = adam}, .freeze = freeze}), kFreeze + 10},
          {zero_one_adam_recipe({.adam = adam, .schedule = schedule}), 30}};
}

struct End {
  std::vector<float> values, common;
  MemoryState saved;

  bool operator==(const End&) const = default;
};

void expect_bits_of_threads(const Case& one, bool overlap, const std::vector<double>& limits) {
  comm::Communicator& world = *mpi_tests::mpi_world();
  TrialOptions options{.optimizer = one.optimizer, .gradient = late_gradient, .overlap = overlap};
  options.norm_limits = limits;
  const auto train = [&](Trial& trial) {
    trial.steps(static_cast<int>(one.steps));
    return End{trial.values(), trial.common_values(), trial.save()};
  };
  Trial mine(world, options);
  const End processes = train(mine);
  const auto threads = on_ranks(world.world_size(), options, train);
  EXPECT_TRUE(processes == threads[static_cast<size_t>(world.rank())]) << one.steps << " steps";
}

TEST(MpiTraining, GivesTheBitsOfThreads) {
  ONEBIT_SKIP_WITHOUT_MPIRUN();
  const std::vector<double> none, some(3, 2.0);  // a trial has three buckets
  for (const Case& one : cases()) {
    for (const auto& [overlap, limits] :
         {std::pair(false, none), std::pair(true, none), std::pair(true, some)}) {
      expect_bits_of_threads(one, overlap, limits);
    }
  }
}

TEST(MpiTraining, GivesTheBitsOfThreadsOnTwoLevels) {
  ONEBIT_SKIP_WITHOUT_MPIRUN();
  const auto world = mpi_tests::mpi_world()->duplicate();
  std::vector<int> nodes;
  for (int rank = 0; rank < world->world_size(); ++rank) nodes.push_back(rank % 2);
  for (const bool overlap : {false, true}) {
    const TrialOptions options = on_two_levels(
        {.optimizer =
             onebit_adam_recipe({.adam = {.weight_decay = 0.01}, .freeze = {.step = kFreeze}}),
         .gradient = late_gradient,
         .norm_limits = std::vector<double>(overlap ? 3 : 0, 2.0),
         .overlap = overlap},
        nodes);
    const auto train = [](Trial& trial) {
      trial.steps(kFreeze + 12);
      return std::pair(trial.values(), trial.save());
    };
    Trial mine(*world, options);
    const auto processes = train(mine);
    const auto threads = on_ranks(world->world_size(), options, train);
    const auto& same = threads[static_cast<size_t>(world->rank())];
    EXPECT_EQ(processes.first, same.first);
    EXPECT_EQ(processes.second, same.second);
  }
}

}  // namespace
}  // namespace onebit::optim
