#include "onebit/math/updates/onebit_adam_update.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "tests/updates/onebit_adam_update_fixture.h"

namespace onebit::updates {
namespace {

class OnebitStepTest : public OnebitUpdateTest {};

TEST_P(OnebitStepTest, Step) {
  State state;
  const State before = state;
  std::vector<bf16> copied(kElements);
  OnebitStep args{.value = view_of(state.value),
                  .compute_value = View::of(copied.data(), {kElements}),
                  .momentum = view_of(state.momentum),
                  .still = View::of(state.still.data(), {kElements / 8}),
                  .ranges = kDecays,
                  .learning_rate = 0.01,
                  .momentum_factor = 3};
  step(args);
  for (size_t i = 0; i < state.value.size(); ++i) {
    const double decay = decay_of(kDecays, static_cast<int64_t>(i));
    const double rate = 0.01 * rate_of(kDecays, static_cast<int64_t>(i));
    const double expected =
        before.value[i] - rate * (3.0 * before.momentum[i] + decay * before.value[i]);
    if (stands_still(i)) {
      ASSERT_EQ(state.value[i], before.value[i]) << i;
    } else {
      ASSERT_NEAR(state.value[i], expected, 2 * kRounding * std::abs(expected) + 1e-9) << i;
    }
    ASSERT_EQ(copied[i], bf16(state.value[i])) << i;
  }
  EXPECT_EQ(state.momentum, before.momentum);
  EXPECT_EQ(state.still, before.still);

  const Values stepped = state.value;
  state.value = before.value;
  args.compute_value = View();
  step(args);
  EXPECT_EQ(state.value, stepped);

  std::vector<f16> halves(kElements);
  state.value = before.value;
  args.compute_value = View::of(halves.data(), {kElements});
  step(args);
  EXPECT_EQ(state.value, stepped);
  for (size_t i = 0; i < halves.size(); ++i) ASSERT_EQ(halves[i], f16(stepped[i])) << i;
}

ONEBIT_ON_EVERY_DEVICE(OnebitStepTest);

}  // namespace
}  // namespace onebit::updates
