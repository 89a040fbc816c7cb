// Groups of parameters with their own learning rates and weight decays. The trial's gradients do
// not depend on its values, and a momentum does not depend on rates, so the parameters of a group
// must move as they do in a run whose groups all have that group's settings.
#include <gtest/gtest.h>

#include <cmath>
#include <tuple>

#include "onebit/exchange/one_bit/onebit_adam.h"
#include "onebit/exchange/one_bit/onebit_lamb.h"
#include "onebit/exchange/one_bit/zero_one_adam.h"
#include "onebit/exchange/optim/lamb.h"
#include "tests/base/message_of.h"
#include "tests/optim/trial.h"

namespace onebit::optim {
namespace {

constexpr int64_t kFreeze = 6;
constexpr int kSteps = 34;
constexpr AdamOptions kAdam{.weight_decay = 0.01};

// From update 13 on ranks make local updates, of which four are gathered at last.
std::shared_ptr<const OptimizerRecipe> recipe_of(const std::string& name) {
  if (name == "adam") return adam_recipe(kAdam);
  if (name == "lamb") return lamb_recipe({.adam = kAdam});
  if (name == "onebit_adam")
    return onebit_adam_recipe({.adam = kAdam, .freeze = {.step = kFreeze}});
  if (name == "onebit_lamb") {
    return onebit_lamb_recipe({.lamb = {.adam = kAdam}, .freeze = {.step = kFreeze}});
  }
  return zero_one_adam_recipe(
      {.adam = kAdam,
       .schedule = {
           .variance_freeze = 12, .variance_scaler = 4, .local_scaler = 6, .local_limit = 4}});
}

// Rates that change from step to step, differently in each group.
std::vector<UpdateGroup> settings(int64_t step) {
  const double turn = static_cast<double>(step % 5);
  return {{.rate = 1, .weight_decay = 0.1},
          {.rate = 0.5 + turn / 8, .weight_decay = 0.02},
          {.rate = step < 20 ? 2.0 : 0.25, .weight_decay = 0.3}};
}

std::vector<float> end_of(TrialOptions options, int ranks) {
  return on_ranks(ranks, options, [](Trial& trial) {
    trial.steps(kSteps);
    return trial.common_values();
  })[0];
}

class OptimizerGroupsTest : public testing::TestWithParam<std::tuple<std::string, int, bool>> {
 protected:
  TrialOptions options() const {
    return {.optimizer = recipe_of(std::get<0>(GetParam())), .overlap = std::get<2>(GetParam())};
  }
  int ranks() const { return std::get<1>(GetParam()); }
};

TEST_P(OptimizerGroupsTest, EachMovesAsInARunOfItsOwn) {
  TrialOptions groups = options();
  groups.groups = settings;
  const std::vector<float> found = end_of(groups, ranks());
  const int64_t ends[] = {48 * 96, (48 + 64) * 96, (48 + 64) * 96 + 90};
  int64_t begin = 0;
  for (size_t group = 0; group < 3; ++group) {
    TrialOptions alone = options();
    alone.groups = [group](int64_t step) {
      return std::vector<UpdateGroup>(3, settings(step)[group]);
    };
    const std::vector<float> expected = end_of(alone, ranks());
    for (int64_t i = begin; i < ends[group]; ++i) {
      // The sums of rates round differently.
      const auto place = static_cast<size_t>(i);
      ASSERT_NEAR(found[place], expected[place], 0x1p-22 * (1 + std::abs(expected[place])))
          << group << " " << i;
    }
    begin = ends[group];
  }
}

TEST_P(OptimizerGroupsTest, WithTheCommonSettingsChangeNothing) {
  TrialOptions groups = options();
  groups.groups = [](int64_t) {
    return std::vector<UpdateGroup>(3, {.rate = 1, .weight_decay = kAdam.weight_decay});
  };
  EXPECT_EQ(end_of(groups, ranks()), end_of(options(), ranks()));
}

// Without overlap a change of the groups between backward pass and step would not show.
INSTANTIATE_TEST_SUITE_P(, OptimizerGroupsTest,
                         testing::Combine(testing::Values("adam", "lamb", "onebit_adam",
                                                          "onebit_lamb", "zero_one"),
                                          testing::Values(1, 3), testing::Bool()));

TEST(OptimizerGroups, TheSumsOfTheirRatesAreSaved) {
  TrialOptions options{.optimizer = recipe_of("zero_one"), .groups = settings};
  constexpr int kSaved = 27;  // between two exchanges
  const auto unbroken = on_ranks(2, options, [](Trial& trial) {
    trial.steps(kSaved);
    const MemoryState saved = trial.save();
    std::vector<float> common = trial.common_values();
    EXPECT_NE(common, trial.values());
    trial.steps(kSteps - kSaved);
    return std::tuple(saved, common, trial.values());
  });
  const std::vector<MemoryState> saved{std::get<0>(unbroken[0]), std::get<0>(unbroken[1])};
  const auto resumed = on_ranks(2, options, [&](Trial& trial) {
    trial.load(saved, std::get<1>(unbroken[0]), kSaved + 1);
    trial.steps(kSteps - kSaved);
    return trial.values();
  });
  for (size_t rank = 0; rank < 2; ++rank) {
    EXPECT_EQ(resumed[rank], std::get<2>(unbroken[rank]));
  }
  options.groups = nullptr;
  const std::string message = message_of([&] {
    on_ranks(2, options, [&](Trial& trial) {
      trial.load(saved, std::get<1>(unbroken[0]), kSaved + 1);
      return 0;
    });
  });
  EXPECT_NE(message.find("3 groups"), std::string::npos) << message;
}

// Decay that is part of the gradient is read while gradients are exchanged.
TEST(OptimizerGroups, DecayOfTheGradientIsTheGroups) {
  AdamOptions adam{.weight_decay = 0.5};
  adam.decoupled_decay = false;
  const auto recipe = onebit_adam_recipe({.adam = adam, .freeze = {.step = kFreeze}});
  const auto groups = [](double decay) {
    return [decay](int64_t) { return std::vector<UpdateGroup>(3, {.weight_decay = decay}); };
  };
  for (const bool overlap : {false, true}) {
    const TrialOptions plain{.optimizer = recipe, .overlap = overlap};
    TrialOptions same = plain, other = plain;
    same.groups = groups(0.5);
    other.groups = groups(0.1);
    const std::vector<float> expected = end_of(plain, 2);
    EXPECT_EQ(end_of(same, 2), expected);
    EXPECT_NE(end_of(other, 2), expected);
  }
}

}  // namespace
}  // namespace onebit::optim
