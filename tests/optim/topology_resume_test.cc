// Checkpoints of two levels: resumed exactly, and moved to other levels and ranks.
#include <gtest/gtest.h>

#include <cmath>

#include "tests/base/message_of.h"
#include "tests/optim/two_levels.h"

namespace onebit::optim {
namespace {

TEST(TwoLevels, ResumeExactlyInEveryPhase) {
  for (const Recipe& recipe : variants()) {
    const TrialOptions options =
        on_two_levels({.optimizer = recipe, .gradient = coarse_gradient}, {0, 0, 1, 1});
    const Saved unbroken = saved_after(kLevelsSteps, 4, options);
    for (const int at : {3, 8, 10, 15, 20, 27}) {
      const Saved saved = saved_after(at, 4, options);
      const auto resumed = on_ranks(4, options, [&](Trial& trial) {
        trial.load(saved.states, saved.values, at + 1);
        trial.steps(kLevelsSteps - at);
        return std::pair(trial.save(), trial.common_values());
      });
      for (size_t rank = 0; rank < 4; ++rank) {
        EXPECT_EQ(resumed[rank].first, unbroken.states[rank]) << "at " << at;
        EXPECT_EQ(resumed[rank].second, unbroken.values) << "at " << at;
      }
    }
  }
}

// The states of all ranks under this name, at their places in the flat buffer, or the mean of
// states that every source has.
std::vector<float> assembled(const Saved& saved, const Layout& layout, const std::string& name) {
  const auto elements = static_cast<int64_t>(saved.values.size());
  const compress::Ownership ownership = layout.ownership(elements);
  const bool owned = name == "owner_momentum" || name == "server_residual";
  std::vector<double> sum(saved.values.size(), 0.0);
  int64_t counted = 0;
  for (int rank = 0; rank < layout.ranks; ++rank) {
    const auto& own = saved.states[static_cast<size_t>(rank)].own_buffers;
    if (!own.contains(name)) continue;
    const std::vector<float>& part = own.at(name);
    int64_t next = 0;
    for (const auto& [range, place] : owned ? ownership.owned(rank) : ownership.shares(rank)) {
      EXPECT_EQ(place, next);
      next += range.elements();
      for (int64_t i = range.begin; i < range.end; ++i) {
        const auto at = static_cast<size_t>(place + i - range.begin);
        sum[static_cast<size_t>(i)] += part.at(at) / (owned ? 1.0 : ownership.sources());
      }
    }
    EXPECT_EQ(next, static_cast<int64_t>(part.size())) << name << " of rank " << rank;
    counted += next;
  }
  EXPECT_EQ(counted, (owned ? 1 : ownership.sources()) * elements) << name;
  return {sum.begin(), sum.end()};
}

// The owners' state is preserved, and the sources' state keeps its mean.
TEST(TwoLevels, MoveToAndFromEveryLayout) {
  const std::vector<Layout> layouts = {{4, {}},
                                       {2, {}},
                                       {4, {0, 0, 1, 1}},
                                       {4, {0, 1, 0, 1}},
                                       {6, {0, 0, 1, 1, 2, 2}},
                                       {6, {0, 0, 0, 1, 1, 1}}};
  for (const Layout& before : layouts) {
    const Saved saved = saved_after(kLevelsFreeze + 4, before.ranks, before.options(onebit_adam()));
    for (const Layout& now : layouts) {
      Saved moved;
      const auto ends = on_ranks(now.ranks, now.options(onebit_adam()), [&](Trial& trial) {
        trial.load(saved.states, saved.values, kLevelsFreeze + 5);
        EXPECT_EQ(trial.optimizer().phase(), Phase::kCompressed);
        MemoryState state = trial.save();
        EXPECT_EQ(trial.values(), saved.values);
        trial.steps(3);
        return std::pair(state, trial.values());
      });
      for (const auto& [state, values] : ends) {
        moved.states.push_back(state);
        EXPECT_EQ(values, ends[0].second);
        for (const float value : values) ASSERT_TRUE(std::isfinite(value));
      }
      moved.values = saved.values;
      for (const char* name : {"owner_momentum", "server_residual"}) {
        EXPECT_EQ(assembled(moved, now, name), assembled(saved, before, name)) << name;
      }
      for (const char* name : {"variance", "worker_residual"}) {
        const std::vector<float> found = assembled(moved, now, name);
        const std::vector<float> expected = assembled(saved, before, name);
        for (size_t i = 0; i < found.size(); ++i) {
          ASSERT_NEAR(found[i], expected[i], 0x1p-22 * std::abs(expected[i]) + 1e-30) << name;
        }
      }
    }
  }
}

// To one rank, back to the warm-up, and with local updates under way.
TEST(TwoLevels, MoveToOneRankAndBack) {
  const Layout nodes{4, {0, 0, 1, 1}};
  for (const Recipe& recipe : variants()) {
    for (const int at : {5, 12, 27}) {
      const Saved saved = saved_after(at, 4, nodes.options(recipe));
      Layout alone;
      const auto single = on_ranks(1, alone.options(recipe), [&](Trial& trial) {
        trial.load(saved.states, saved.values, at + 1);
        trial.steps(4);
        return std::pair(trial.save(), trial.common_values());
      });
      const auto back = on_ranks(4, nodes.options(recipe), [&](Trial& trial) {
        trial.load({single[0].first}, single[0].second, at + 5);
        EXPECT_EQ(trial.common_values(), single[0].second);
        trial.steps(4);
        return trial.common_values();
      });
      for (const auto& values : back) {
        EXPECT_EQ(values, back[0]);
        EXPECT_NE(values, single[0].second);
        for (const float value : values) ASSERT_TRUE(std::isfinite(value));
      }
    }
  }
}

TEST(TwoLevels, ReturnToTheWarmupAsOneLevelDoes) {
  OneBitAdamOptions ahead = onebit_options();
  ahead.freeze.step = kLevelsFreeze + 5;
  // Where ranks have the same gradients, the means over sources equal the means on one level.
  std::vector<std::vector<float>> thawed, ended;
  for (const Layout& layout : {Layout{2, {}}, Layout{4, {0, 0, 1, 1}}}) {
    TrialOptions options = layout.options(onebit_adam());
    options.gradient = [&layout](int rank, int64_t step, int64_t place) {
      const int node = layout.nodes.empty() ? rank : layout.nodes[static_cast<size_t>(rank)];
      return coarse_gradient(node, step, place);
    };
    const Saved saved = saved_after(kLevelsFreeze + 1, layout.ranks, options);
    options.optimizer = onebit_adam_recipe(ahead);
    const auto ends = on_ranks(layout.ranks, options, [&](Trial& trial) {
      trial.load(saved.states, saved.values, kLevelsFreeze + 2);
      EXPECT_EQ(trial.optimizer().phase(), Phase::kWarmup);
      const MemoryState state = trial.save();
      trial.steps(6);
      EXPECT_EQ(trial.optimizer().phase(), Phase::kCompressed);
      return std::pair(state.replicated_buffers.at("momentum"), trial.values());
    });
    thawed.push_back(ends[0].first);
    ended.push_back(ends[0].second);
  }
  // Other ranks are the owners, so their parts are summed in another order.
  for (size_t i = 0; i < thawed[0].size(); ++i) {
    ASSERT_NEAR(thawed[0][i], thawed[1][i], 1e-6 * std::abs(thawed[0][i]) + 1e-9) << i;
    ASSERT_NEAR(ended[0][i], ended[1][i], 1e-3) << i;
  }
}

TEST(TwoLevels, RefuseStateThatDoesNotDivideTheBuffer) {
  const TrialOptions options = on_two_levels({.optimizer = onebit_adam()}, {0, 0, 1, 1});
  const Saved saved = saved_after(kLevelsFreeze + 2, 4, options);
  const auto error_with = [&](const char* key, const Json& value) {
    std::vector<MemoryState> states = saved.states;
    for (MemoryState& state : states) state.scalars[key] = value;
    return message_of([&] {
      on_ranks(4, options, [&](Trial& trial) {
        trial.load(states, saved.values, kLevelsFreeze + 3);
        return 0;
      });
    });
  };
  EXPECT_EQ(error_with("bucket_bytes", 16384), "(no error)");
  // A bucket of one block leaves nothing for the second rank of a node.
  for (const auto& [key, value] :
       {std::pair("bucket_bytes", Json(8192)), std::pair("nodes", Json{0, 0, 1}),
        std::pair("nodes", Json{0, 0, 0, 1})}) {
    EXPECT_EQ(error_with(key, value).rfind("the checkpoint's state.json is damaged: `nodes`", 0),
              0u)
        << key << " " << value << ": " << error_with(key, value);
  }
}

}  // namespace
}  // namespace onebit::optim
