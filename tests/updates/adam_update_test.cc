#include "onebit/math/updates/adam_update.h"

#include <gtest/gtest.h>
#include <hwy/targets.h>

#include <cmath>
#include <vector>

#include "tests/ops/mirror.h"
#include "tests/updates/update_values.h"

namespace onebit::updates {
namespace {

struct State {
  Values value, gradient, momentum, variance;

  explicit State(size_t count)
      : value(random_values(5, 1, count, 2)),
        gradient(random_values(5, 2, count, 1)),
        momentum(random_values(5, 3, count, 0.1)),
        variance(random_values(5, 4, count, 0.01)) {
    for (float& one : variance) one = std::abs(one);
  }
  AdamUpdate arguments(std::span<const UpdateRange> ranges) {
    return {.value = view_of(value),
            .gradient = view_of(gradient),
            .momentum = view_of(momentum),
            .variance = view_of(variance),
            .ranges = ranges,
            .learning_rate = 0.01,
            .gradient_scale = 0.5,
            .momentum_factor = 3,
            .variance_factor = 7};
  }
};

class AdamUpdateTest : public ops::MirrorTest {
 protected:
  void run(AdamUpdate a) {
    ops::Mirror mirror(context());
    a.value = mirror(a.value);
    a.compute_value = mirror(a.compute_value);
    a.gradient = mirror(a.gradient);
    a.momentum = mirror(a.momentum);
    a.variance = mirror(a.variance);
    adam_update(context(), a);
    mirror.bring_back();
  }
};

TEST_P(AdamUpdateTest, FollowsTheFormula) {
  // Ranges that end inside a vector step, and a length that no vector divides but 16.
  const std::vector<UpdateRange> ranges{{0, 16, 0.1, 0.5}, {16, 4112, 0}, {4112, 10000, 0.2, 3}};
  for (const bool decoupled : {true, false}) {
    State state(10000);
    const State before = state;
    AdamUpdate args = state.arguments(ranges);
    args.decoupled = decoupled;
    run(args);
    for (size_t i = 0; i < state.value.size(); ++i) {
      const double decay = i < 16 ? 0.1 : i < 4112 ? 0 : 0.2;
      double g = 0.5 * before.gradient[i];
      if (!decoupled) g += decay * before.value[i];
      const double m = 0.9 * before.momentum[i] + 0.1 * g;
      const double v = 0.999 * before.variance[i] + 0.001 * g * g;
      double u = 3 * m / (std::sqrt(7 * v) + 1e-8);
      if (decoupled) u += decay * before.value[i];
      const double rate = i < 16 ? 0.5 : i < 4112 ? 1 : 3;
      const double value = before.value[i] - 0.01 * rate * u;
      // A few roundings, each relative to the size of the result.
      ASSERT_NEAR(state.momentum[i], m, 4 * 0x1p-24) << i;
      ASSERT_NEAR(state.variance[i], v, 4 * 0x1p-24 * 0.02) << i;
      ASSERT_NEAR(state.value[i], value, 0x1p-23 + 0.01 * std::abs(u) * 16 * 0x1p-24) << i;
    }
    EXPECT_EQ(state.gradient, before.gradient);
  }
}

TEST(AdamUpdate, ThreadsChangeNothing) {
  const std::vector<UpdateRange> ranges{{0, 40000, 0.1}, {40000, 100000, 0}};
  State one(100000), three(100000);
  Context single = Context::cpu(1), several = Context::cpu(3);
  adam_update(single, one.arguments(ranges));
  adam_update(several, three.arguments(ranges));
  EXPECT_EQ(one.value, three.value);
  EXPECT_EQ(one.momentum, three.momentum);
  EXPECT_EQ(one.variance, three.variance);
}

TEST_P(AdamUpdateTest, ZeroDenominatorMovesNothing) {
  const std::vector<UpdateRange> ranges{{0, 32, 0}};
  State state(32);
  for (Values* values : {&state.gradient, &state.momentum, &state.variance}) {
    std::fill(values->begin(), values->end(), 0.0f);
  }
  const Values before = state.value;
  AdamUpdate args = state.arguments(ranges);
  args.epsilon = 0;
  run(args);
  EXPECT_EQ(state.value, before);
}

// Nine tenths of the smallest denormal numbers round to themselves, so they must be cleared.
TEST_P(AdamUpdateTest, AMomentumWithoutGradientsEndsAtZero) {
  const std::vector<UpdateRange> ranges{{0, 48, 0}};
  State state(48);
  std::fill(state.gradient.begin(), state.gradient.end(), 0.0f);
  for (size_t i = 0; i < state.momentum.size(); ++i) {
    const float size = i < 16 ? 4e-45f : i < 32 ? 1.2e-38f : 1e-37f;
    state.momentum[i] = i % 2 == 0 ? size : -size;
  }
  run(state.arguments(ranges));
  for (size_t i = 0; i < state.momentum.size(); ++i) {
    const float expected = i < 32 ? 0.0f : i % 2 == 0 ? 0.9f * 1e-37f : -0.9f * 1e-37f;
    EXPECT_EQ(state.momentum[i], expected) << i;
  }
}

TEST_P(AdamUpdateTest, WritesTheComputeCopy) {
  const std::vector<UpdateRange> ranges{{0, 48, 0}};
  State state(48);
  std::vector<bf16> copied(48);
  AdamUpdate args = state.arguments(ranges);
  args.compute_value = View::of(copied.data(), {48});
  run(args);
  for (size_t i = 0; i < copied.size(); ++i) EXPECT_EQ(copied[i], bf16(state.value[i])) << i;
  std::vector<f16> halves(48);
  args.compute_value = View::of(halves.data(), {48});
  run(args);
  for (size_t i = 0; i < halves.size(); ++i) EXPECT_EQ(halves[i], f16(state.value[i])) << i;
}

// The CUDA kernel's formula for an element, on the host, gives the bits of the vector loops, except
// that instruction sets without fused multiply-adds round twice, relative to the added value.
TEST(AdamUpdate, TheFormulaForCudaAgrees) {
  const std::vector<UpdateRange> ranges{{0, 4096, 0.1}};
  Context context = Context::cpu(1);
  for (const int64_t target : hwy::SupportedAndGeneratedTargets()) {
    hwy::SetSupportedTargetsForTest(target);
    for (const bool decoupled : {true, false}) {
      State state(4096);
      const State before = state;
      AdamUpdate args = state.arguments(ranges);
      args.decoupled = decoupled;
      adam_update(context, args);
      const AdamFactors factors(args);
      for (size_t i = 0; i < state.value.size(); ++i) {
        const float value = before.value[i], gradient = before.gradient[i];
        const AdamElement made = adam_element({value, before.momentum[i], before.variance[i]},
                                              gradient, 0.1f, factors.rate_of(1), factors);
        const float added = 0.9f * std::abs(before.momentum[i]) +
                            0.1f * (std::abs(gradient) + 0.1f * std::abs(value));
        ASSERT_NEAR(made.momentum, state.momentum[i], 0x1p-22 * added) << hwy::TargetName(target);
        ASSERT_NEAR(made.variance, state.variance[i], 0x1p-22 * made.variance) << i;
        const float step = 0.01f * 3 / std::sqrt(7 * made.variance) * added;  // without cancelling
        ASSERT_NEAR(made.value, state.value[i], 0x1p-22 * (std::abs(value) + step)) << i;
      }
    }
  }
  hwy::SetSupportedTargetsForTest(0);
}

ONEBIT_ON_EVERY_DEVICE(AdamUpdateTest);

}  // namespace
}  // namespace onebit::updates
