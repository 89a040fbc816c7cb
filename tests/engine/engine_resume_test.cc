// Compressed runs that resume on other ranks, from states in memory, which tests can damage.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>

#include "onebit/exchange/engine/engine.h"
#include "tests/engine/toy_model.h"
#include "tests/optim/memory_state.h"

namespace onebit::engine {
namespace {

using States = std::vector<optim::MemoryState>;
using Losses = std::vector<double>;

struct Interrupted {
  States states;
  std::vector<float> values;
  int64_t samples = 0;
  Losses unbroken;
};

// Past two cycles of the noise, and far from where the toy is learned.
constexpr int kAt = 27, kRest = 12;

struct Optimizer {
  const char* name;
  const char* recipe;
  bool is_calm;  // so that each part of the state can be missed alone
  double most_apart;
};

EngineConfig config_of(const Optimizer& optimizer) {
  return toy_config(optimizer.recipe, 12, 1);
}

Interrupted interrupted(const EngineConfig& config, int ranks) {
  Interrupted run{.states = States(static_cast<size_t>(ranks))};
  comm::run_thread_world(ranks, [&](comm::Communicator& communicator) {
    const int rank = communicator.rank();
    ToyRun toy(config, communicator);
    for (int step = 0; step < kAt; ++step) toy.step();
    toy.engine().with_common_values([&] {
      toy.engine().save(run.states[static_cast<size_t>(rank)]);
      if (rank == 0) run.values = toy.values();
    });
    if (rank == 0) run.samples = toy.samples();
    for (int step = 0; step < kRest; ++step) {
      const double loss = toy.step();
      if (rank == 0) run.unbroken.push_back(loss);
    }
  });
  return run;
}

Losses continued(const EngineConfig& config, const Interrupted& run, const States& states,
                 int ranks) {
  Losses losses;
  comm::run_thread_world(ranks, [&](comm::Communicator& communicator) {
    ToyRun toy(config, communicator);
    std::copy(run.values.begin(), run.values.end(), toy.table().values().data<float>());
    toy.engine().load(optim::MemoryReader(states));
    toy.continue_from(run.samples);
    for (int step = 0; step < kRest; ++step) {
      const double loss = toy.step();
      if (communicator.rank() == 0) losses.push_back(loss);
    }
    toy.engine().with_common_values([&] { EXPECT_TRUE(toy.engine().replicas_agree()); });
  });
  return losses;
}

// The mean of the losses' differences, each in shares of the loss.
double apart(const Losses& losses, const Losses& expected) {
  double sum = 0;
  for (size_t step = 0; step < expected.size(); ++step) {
    sum += std::abs(losses[step] / expected[step] - 1);
  }
  return sum / static_cast<double>(expected.size());
}

// The states with `change` made to a buffer of every rank that has it.
States damaged(States states, const std::string& name,
               const std::function<void(std::vector<float>&)>& change) {
  for (optim::MemoryState& state : states) {
    const auto buffer = state.own_buffers.find(name);
    if (buffer != state.own_buffers.end()) change(buffer->second);
  }
  return states;
}

// The losses equal the uninterrupted run's up to the noise of the signs, which differs with the
// ranks. They do not if state is lost or assigned to wrong elements. (Residuals are too small
// to matter here: residual_placement_test.cc checks them exactly.)
class EngineResume : public testing::TestWithParam<Optimizer> {};

TEST_P(EngineResume, ContinuesOnAnotherNumberOfRanks) {
  const EngineConfig config = config_of(GetParam());
  const Interrupted run = interrupted(config, 3);
  EXPECT_EQ(continued(config, run, run.states, 3), run.unbroken);
  for (const int ranks : {1, 2, 6}) {
    const double intact = apart(continued(config, run, run.states, ranks), run.unbroken);
    EXPECT_LT(intact, GetParam().most_apart) << "on " << ranks;
    const auto expect_worse = [&](const States& states, const char* how, double factor) {
      const Losses losses = continued(config, run, states, ranks);
      EXPECT_GT(apart(losses, run.unbroken), factor * intact) << how << " on " << ranks;
    };
    const auto zero = [](std::vector<float>& values) { std::ranges::fill(values, 0.0f); };
    const auto shift = [](std::vector<float>& values) {
      std::rotate(values.begin(), values.begin() + 300, values.end());
    };
    const States without_momentum = damaged(run.states, "owner_momentum", zero);
    expect_worse(damaged(without_momentum, "variance", shift), "lost state", 1.5);
    if (!GetParam().is_calm) continue;
    expect_worse(without_momentum, "lost momentum", 2);
    expect_worse(damaged(run.states, "owner_momentum", shift), "shifted momentum", 2);
    expect_worse(damaged(run.states, "variance", shift), "shifted variance", 2);
    const auto grow = [](std::vector<float>& values) {
      for (float& one : values) one *= 4;
    };
    expect_worse(damaged(run.states, "variance", grow), "variance four times as large", 2);
  }
}

INSTANTIATE_TEST_SUITE_P(
    Optimizers, EngineResume,
    testing::Values(Optimizer{"OneBitAdam",
                              R"({"type": "OneBitAdam", "params": {"lr": 1e-3, "freeze_step": 8}})",
                              true, 0.025},
                    Optimizer{
                        "ZeroOneAdam",
                        R"({"type": "ZeroOneAdam", "params": {"lr": 1e-3, "var_freeze_step": 12,
                      "var_update_scaler": 4, "local_step_scaler": 10, "local_step_clipper": 3}})",
                        false, 0.1}),
    [](const auto& test) { return test.param.name; });

}  // namespace
}  // namespace onebit::engine
