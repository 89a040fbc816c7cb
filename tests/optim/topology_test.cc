// The 1-bit optimizers with exact means inside a node and one bit between nodes.
#include <gtest/gtest.h>

#include <atomic>
#include <cmath>
#include <limits>

#include "onebit/exchange/optim/topology.h"
#include "onebit/math/device/memory.h"
#include "tests/base/message_of.h"
#include "tests/optim/two_levels.h"

namespace onebit::optim {
namespace {

using History = std::vector<std::vector<float>>;

History common_history(Trial& trial) {
  History history;
  for (int step = 0; step < kLevelsSteps; ++step) {
    EXPECT_TRUE(trial.step().applied);
    history.push_back(trial.common_values());
  }
  return history;
}

TEST(TwoLevels, OfOneRankANodeAreOneLevel) {
  for (const Recipe& recipe : variants()) {
    for (const bool overlap : {false, true}) {
      const TrialOptions one{
          .optimizer = recipe,
          .gradient = coarse_gradient,
          .norm_limits = overlap ? std::vector<double>(3, 2.0) : std::vector<double>(),
          .overlap = overlap};
      EXPECT_EQ(on_ranks(2, on_two_levels(one, {0, 1}), common_history),
                on_ranks(2, one, common_history));
    }
  }
}

// If the ranks of a node have the same gradients, the node behaves like one rank, whatever the
// placement of ranks.
TEST(TwoLevels, OfEqualRanksInANodeAreOneLevelOfNodes) {
  for (const Recipe& recipe : {onebit_adam(), variants()[1], zero_one_adam()}) {
    const auto expected =
        on_ranks(2, {.optimizer = recipe, .gradient = coarse_gradient}, common_history);
    for (const Nodes& nodes : {Nodes{0, 0, 1, 1}, Nodes{0, 1, 0, 1}, Nodes{0, 1, 1, 0}}) {
      const TrialOptions options{.optimizer = recipe,
                                 .gradient = [&nodes](int rank, int64_t step, int64_t place) {
                                   const int node = nodes[static_cast<size_t>(rank)];
                                   return coarse_gradient(node, step, place);
                                 }};
      for (const History& history : on_ranks(4, on_two_levels(options, nodes), common_history)) {
        EXPECT_EQ(history, expected[0]);
      }
    }
  }
}

TEST(TwoLevels, KeepReplicasEqual) {
  for (const Recipe& recipe : variants()) {
    for (const Nodes& nodes :
         {Nodes{0, 0, 1, 1}, Nodes{0, 1, 2, 2, 1, 0}, Nodes{0, 0, 0, 1, 1, 1}}) {
      for (const bool overlap : {false, true}) {
        const TrialOptions options = on_two_levels(
            {.optimizer = recipe, .gradient = coarse_gradient, .overlap = overlap}, nodes);
        const auto all = on_ranks(static_cast<int>(nodes.size()), options, common_history);
        for (const History& history : all) EXPECT_EQ(history, all[0]);
        for (const float value : all[0].back()) ASSERT_TRUE(std::isfinite(value));
      }
    }
  }
}

// Includes the shares of the node's other ranks.
TEST(TwoLevels, WriteTheComputeCopy) {
  for (const Recipe& recipe : variants()) {
    const TrialOptions options =
        on_two_levels({.optimizer = recipe, .compute = DType::kBF16}, {0, 0, 1, 1});
    on_ranks(4, options, [](Trial& trial) {
      for (int step = 0; step < 24; ++step) {
        trial.step();
        const Tensor copied = to_cpu_f32(trial.table().compute_values());
        const std::vector<float> values = trial.values();
        for (size_t i = 0; i < values.size(); ++i) {
          EXPECT_EQ(copied.data<float>()[i], static_cast<float>(bf16(values[i]))) << i;
        }
      }
      return 0;
    });
  }
}

TEST(TwoLevels, ChangeNothingByOverlapping) {
  for (const Recipe& recipe : variants()) {
    TrialOptions options = on_two_levels({.optimizer = recipe}, {0, 0, 1, 1});
    options.norm_limits = {0.5, 0.5, 0.5};
    const auto after = on_ranks(4, options, common_history);
    options.overlap = true;
    EXPECT_EQ(on_ranks(4, options, common_history), after);
  }
}

// Between exchanges of 0/1 Adam nodes differ, the ranks of a node do not.
TEST(TwoLevels, HaveOneValueANodeBetweenExchanges) {
  const auto values =
      on_ranks(4, on_two_levels({.optimizer = zero_one_adam()}, {0, 0, 1, 1}), [](Trial& trial) {
        const auto& zero_one = dynamic_cast<CompressedOptimizer&>(trial.optimizer());
        for (int step = 0; step < kLevelsSteps; ++step) {
          trial.step();
          if (zero_one.local_updates() > 1) break;
        }
        EXPECT_GT(zero_one.local_updates(), 1);
        return trial.values();
      });
  EXPECT_EQ(values[0], values[1]);
  EXPECT_EQ(values[2], values[3]);
  EXPECT_NE(values[0], values[2]);
}

TEST(TwoLevels, MoveNothingWhenAGradientIsNotFinite) {
  for (const float bad :
       {std::numeric_limits<float>::infinity(), std::numeric_limits<float>::quiet_NaN()}) {
    for (const Recipe& recipe : variants()) {
      const TrialOptions options = on_two_levels(
          {.optimizer = recipe,
           .gradient =
               [bad](int rank, int64_t step, int64_t place) {
                 const bool here = rank == 1 && step == kLevelsFreeze + 3 && place == 5000;
                 return here ? bad : noisy_gradient(rank, step, place);
               },
           .overlap = std::isnan(bad)},
          {0, 0, 1, 1});
      const auto values = on_ranks(4, options, [](Trial& trial) {
        trial.steps(kLevelsFreeze + 2);
        if (trial.optimizer().gradient_need() != GradientNeed::kLocalOnly) return trial.values();
        const std::vector<float> before = trial.values();
        EXPECT_FALSE(trial.step().applied);
        EXPECT_EQ(trial.values(), before);
        for (const auto& [name, buffer] : trial.save().own_buffers) {
          for (const float one : buffer) EXPECT_TRUE(std::isfinite(one)) << name;
        }
        return before;
      });
      for (const auto& one : values) EXPECT_EQ(one, values[0]);
    }
  }
}

TEST(TwoLevels, DivideStateOverTheRanksOfANode) {
  const Layout one{4, {}}, two{4, {0, 0, 1, 1}};
  for (const Recipe& recipe : variants()) {
    const Saved whole = saved_after(15, 4, one.options(recipe));
    const Saved shared = saved_after(15, 4, two.options(recipe));
    const size_t elements = whole.values.size();
    for (size_t rank = 0; rank < 4; ++rank) {
      for (const char* name : {"variance", "worker_residual"}) {
        EXPECT_EQ(whole.states[rank].own_buffers.at(name).size(), elements);
        EXPECT_LE(shared.states[rank].own_buffers.at(name).size(), elements / 2 + 2048);
      }
    }
    const auto memory = on_ranks(4, two.options(recipe), [](Trial& trial) {
      const int64_t warm = trial.optimizer().state_bytes();
      const int64_t forecast = trial.optimizer().compressed_state_bytes();
      trial.steps(15);
      EXPECT_EQ(trial.optimizer().state_bytes(), forecast);
      return std::pair(warm, trial.optimizer().state_bytes());
    });
    // Both moments are shared from the freeze on.
    for (const auto& [warm, frozen] : memory) {
      EXPECT_LE(frozen, warm - 8 * static_cast<int64_t>(elements / 2 - 2048));
    }
  }
}

// The freeze divides the moments without holding a whole one and its share at once.
TEST(TwoLevels, FreezeInTheMemoryThatWasAnnounced) {
  const Layout two{4, {0, 0, 1, 1}};
  for (const bool loads : {false, true}) {
    const Saved saved = saved_after(15, 4, two.options(onebit_adam()));
    std::atomic<int64_t> before = 0;
    on_ranks(4, two.options(onebit_adam()), [&](Trial& trial) {
      trial.steps(kLevelsFreeze - 1);
      trial.communicator().barrier();
      if (trial.communicator().rank() == 0) {
        memory::take_most_held_bytes();  // of everything so far
        before = memory::take_most_held_bytes();
      }
      trial.communicator().barrier();
      if (loads) {
        trial.load(saved.states, saved.values, 16);
      } else {
        EXPECT_TRUE(trial.step().froze_now);
      }
      trial.communicator().barrier();
      // With the small buffers of a step: less than a rank's share of one moment.
      if (trial.communicator().rank() == 0) {
        EXPECT_LE(memory::take_most_held_bytes(),
                  before + trial.table().size_elements() * 4 / 2 / 2);
      }
      trial.communicator().barrier();
      return 0;
    });
  }
}

// Returns the bytes of one step, summed over ranks: to other nodes, and in all.
std::pair<int64_t, int64_t> bytes_of_step(const TrialOptions& options) {
  const auto sent = on_ranks(4, options, [](Trial& trial) {
    trial.steps(kLevelsFreeze + 1);
    const auto all = [&] {
      return trial.optimizer().wire_bytes_sent() + trial.communicator().wire_bytes_sent();
    };
    const auto inside = [&] { return trial.communicator().bytes_sent_inside_node(); };
    const int64_t all_before = all(), inside_before = inside();
    trial.step();
    const int64_t sent_now = all() - all_before;
    return std::pair(sent_now - (inside() - inside_before), sent_now);
  });
  std::pair<int64_t, int64_t> sum{0, 0};
  for (const auto& [between, total] : sent) {
    sum.first += between;
    sum.second += total;
  }
  return sum;
}

TEST(TwoLevels, SendBetweenNodesWhatOneRankANodeWould) {
  TrialOptions one{.optimizer = onebit_adam()};
  one.nodes = {0, 0, 1, 1};
  const auto [one_between, one_total] = bytes_of_step(one);
  const auto [two_between, two_total] = bytes_of_step(on_two_levels(one, one.nodes));
  EXPECT_GT(one_between, 0);
  // Half, except for the values on which all ranks agree.
  EXPECT_LT(two_between, one_between * 6 / 10);
  // Inside the node, gradients and values are sent in f32.
  EXPECT_GT(two_total - two_between, 4 * 10000);
}

// The other ranks wait for it inside its node, between nodes, and during the backward pass.
TEST(TwoLevels, EndWithARankThatFails) {
  for (const bool overlap : {false, true}) {
    const TrialOptions options =
        on_two_levels({.optimizer = onebit_adam(),
                       .gradient =
                           [](int rank, int64_t step, int64_t place) {
                             if (rank == 3 && step == kLevelsFreeze + 3 && place == 9000)
                               fail("shard 17 is cut short");
                             return noisy_gradient(rank, step, place);
                           },
                       .overlap = overlap},
                      {0, 0, 1, 1});
    const auto train = [&] {
      on_ranks(4, options, [](Trial& trial) {
        trial.steps(kLevelsFreeze + 5);
        return 0;
      });
    };
    EXPECT_EQ(message_of(train), "shard 17 is cut short");
  }
}

TEST(TwoLevels, NeedEvenNodes) {
  const RunFacts two{.two_levels = true};
  for (const Nodes& nodes : {Nodes{0, 0, 1}, Nodes{0, 0, 0, 0}}) {
    EXPECT_NE(message_of([&] {
                divide_exchange(100000, comm::Nodes(nodes), two);
              }).find("the same number of ranks"),
              std::string::npos);
  }
  EXPECT_NE(message_of([&] {
              divide_exchange(3000, comm::Nodes({0, 0, 0, 1, 1, 1}), two);
            }).find("cannot be divided"),
            std::string::npos);
}

}  // namespace
}  // namespace onebit::optim
