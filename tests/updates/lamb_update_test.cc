#include "onebit/math/updates/lamb_update.h"

#include <gtest/gtest.h>
#include <hwy/targets.h>

#include <cmath>
#include <vector>

#include "tests/ops/mirror.h"
#include "tests/reference/lamb.h"
#include "tests/updates/update_values.h"

namespace onebit::updates {
namespace {

// Tensors of the sizes one after the other, the second of two with decay.
std::vector<LambTensor> tensors_of(const std::vector<int64_t>& sizes) {
  std::vector<LambTensor> tensors;
  int64_t begin = 0, block = 0;
  for (const int64_t size : sizes) {
    const double decay = tensors.size() % 2 == 0 ? 0 : 0.1;
    const double rate = tensors.size() % 3 == 0 ? 0.5 : 1;
    tensors.push_back({begin, begin + size, block, decay, rate});
    begin += size;
    block = tensors.back().end_block();
  }
  return tensors;
}

struct State {
  std::vector<LambTensor> tensors;
  Values value, gradient, momentum, variance, ratio;

  explicit State(const std::vector<int64_t>& sizes)
      : tensors(tensors_of(sizes)),
        value(random_values(6, 1, static_cast<size_t>(tensors.back().end), 2)),
        gradient(random_values(6, 2, value.size(), 1)),
        momentum(random_values(6, 3, value.size(), 0.1)),
        variance(random_values(6, 4, value.size(), 0.01)),
        ratio(tensors.size()) {
    for (float& one : variance) one = std::abs(one);
  }
  void fill(Values& values, size_t tensor, float number) const {
    std::fill(values.begin() + tensors[tensor].begin, values.begin() + tensors[tensor].end, number);
  }
  LambUpdate arguments() {
    return {.value = view_of(value),
            .compute_value = {},
            .gradient = view_of(gradient),
            .momentum = view_of(momentum),
            .variance = view_of(variance),
            .ratio = view_of(ratio),
            .tensors = tensors,
            .learning_rate = 0.01,
            .gradient_scale = 0.5,
            .momentum_factor = 3,
            .variance_factor = 7};
  }
};

class LambUpdateTest : public ops::MirrorTest {
 protected:
  void run(LambUpdate a) {
    ops::Mirror mirror(context());
    a.value = mirror(a.value);
    a.compute_value = mirror(a.compute_value);
    a.gradient = mirror(a.gradient);
    a.momentum = mirror(a.momentum);
    a.variance = mirror(a.variance);
    a.ratio = mirror(a.ratio);
    lamb_update(context(), a);
    mirror.bring_back();
  }
};

std::vector<double> part(const Values& values, const LambTensor& tensor) {
  return {values.begin() + tensor.begin, values.begin() + tensor.end};
}

// Compares `found` with the formula applied to `before`, tensor by tensor.
void expect_formula(const State& before, const State& found, const LambUpdate& a) {
  for (size_t index = 0; index < before.tensors.size(); ++index) {
    const LambTensor& tensor = before.tensors[index];
    const reference::Lamb rule{.epsilon = a.epsilon,
                               .epsilon_inside_root = a.epsilon_inside_root,
                               .weight_decay = tensor.weight_decay,
                               .learning_rate = 0.01 * tensor.rate,
                               .min_ratio = a.min_ratio,
                               .max_ratio = a.max_ratio};
    reference::LambTensorState state{part(before.value, tensor), part(before.momentum, tensor),
                                     part(before.variance, tensor)};
    std::vector<double> gradient = part(before.gradient, tensor);
    for (double& one : gradient) one *= 0.5;
    const double ratio = reference::lamb_step(rule, state, gradient, 3, 7);
    // A few roundings, each relative to the size of the result.
    ASSERT_NEAR(found.ratio[index], ratio, 16 * 0x1p-24 * ratio) << index;
    for (int64_t place = tensor.begin; place < tensor.end; ++place) {
      const auto i = static_cast<size_t>(place), j = static_cast<size_t>(place - tensor.begin);
      const double moved = std::abs(state.value[j] - before.value[i]);
      ASSERT_NEAR(found.momentum[i], state.momentum[j], 4 * 0x1p-24) << i;
      ASSERT_NEAR(found.variance[i], state.variance[j], 4 * 0x1p-24 * 0.02) << i;
      ASSERT_NEAR(found.value[i], state.value[j],
                  0x1p-24 * (std::abs(before.value[i]) + 32 * (moved + 0.01 * ratio)))
          << i;
    }
  }
}

// Shorter than a vector and than a block, whole blocks, one more, beginning anywhere.
const std::vector<int64_t> kSizes{7, 2048, 1, 2049, 5000, 33, 4096, 999};

TEST_P(LambUpdateTest, FollowsTheFormula) {
  for (const bool inside : {false, true}) {
    State state(kSizes);
    state.fill(state.value, 3, 0);  // no values: ratio 1
    for (Values* values : {&state.gradient, &state.momentum, &state.variance}) {
      state.fill(*values, 4, 0);  // no update, no decay
      state.fill(*values, 5, 0);  // decay alone
    }
    state.fill(state.value, 6, 1e-3f);  // shorter than min_ratio allows
    const State before = state;
    LambUpdate args = state.arguments();
    args.epsilon_inside_root = inside;
    if (inside) args.epsilon = 1e-3;
    args.min_ratio = 0.05;
    args.max_ratio = 8;
    run(args);
    expect_formula(before, state, args);
    EXPECT_EQ(state.ratio[3], 1.0f);
    EXPECT_EQ(state.ratio[4], 1.0f);
    EXPECT_EQ(state.ratio[5], 8.0f);
    EXPECT_EQ(state.ratio[6], 0.05f);
    EXPECT_GT(state.ratio[1], 0.05f);
    EXPECT_LT(state.ratio[1], 8.0f);
    EXPECT_EQ(state.gradient, before.gradient);
  }
}

TEST(LambUpdate, ThreadsChangeNothing) {
  const std::vector<int64_t> sizes{100'000, 3, 77'777, 200'001, 512};
  State one(sizes);
  Context single = Context::cpu(1);
  lamb_update(single, one.arguments());
  for (const int threads : {2, 3, 4}) {
    State other(sizes);
    Context several = Context::cpu(threads);
    lamb_update(several, other.arguments());
    EXPECT_EQ(one.value, other.value);
    EXPECT_EQ(one.momentum, other.momentum);
    EXPECT_EQ(one.variance, other.variance);
    EXPECT_EQ(one.ratio, other.ratio);
  }
}

// A block never holds two tensors, so the preceding tensors do not change a tensor's result.
TEST_P(LambUpdateTest, WhereATensorBeginsChangesNothing) {
  State alone({4, 10'001});
  run(alone.arguments());
  for (const int64_t before : {1, 15, 2048, 3001}) {
    State other({before, 10'001}), fresh({4, 10'001});
    const auto copy_second = [&](const Values& from, Values& to) {
      std::copy_n(from.begin() + 4, 10'001, to.begin() + before);
    };
    copy_second(fresh.value, other.value);
    copy_second(fresh.gradient, other.gradient);
    copy_second(fresh.momentum, other.momentum);
    copy_second(fresh.variance, other.variance);
    run(other.arguments());
    EXPECT_EQ(other.ratio[1], alone.ratio[1]) << before;
    EXPECT_TRUE(
        std::equal(alone.value.begin() + 4, alone.value.end(), other.value.begin() + before))
        << before;
  }
}

// Their squares are neither in f32.
TEST_P(LambUpdateTest, NormsReachTheEndsOfF32) {
  State state({3000, 3000});
  state.tensors[1].weight_decay = 0;
  state.fill(state.value, 0, 1e30f);
  state.fill(state.value, 1, 1e-30f);
  for (Values* values : {&state.gradient, &state.momentum}) {
    std::fill(values->begin(), values->end(), 0.5f);
  }
  std::fill(state.variance.begin(), state.variance.end(), 0.25f);
  LambUpdate args = state.arguments();
  args.gradient_scale = 1;
  args.momentum_factor = args.variance_factor = 1;
  args.epsilon = 0;
  args.min_ratio = 0;
  args.max_ratio = 1e35;
  run(args);
  EXPECT_NEAR(state.ratio[0], 1e30, 1e24);
  EXPECT_NEAR(state.ratio[1], 1e-30, 1e-36);
}

TEST_P(LambUpdateTest, ZeroDenominatorMovesNothing) {
  State state({32});
  for (Values* values : {&state.gradient, &state.momentum, &state.variance}) {
    std::fill(values->begin(), values->end(), 0.0f);
  }
  const Values before = state.value;
  LambUpdate args = state.arguments();
  args.epsilon = 0;
  run(args);
  EXPECT_EQ(state.value, before);
  EXPECT_EQ(state.ratio[0], 1.0f);
}

TEST_P(LambUpdateTest, AMomentumWithoutGradientsEndsAtZero) {
  State state({48});
  std::fill(state.gradient.begin(), state.gradient.end(), 0.0f);
  for (size_t i = 0; i < state.momentum.size(); ++i) {
    state.momentum[i] = i < 16 ? 4e-45f : i < 32 ? -1.2e-38f : 1e-37f;
  }
  run(state.arguments());
  for (size_t i = 0; i < state.momentum.size(); ++i) {
    EXPECT_EQ(state.momentum[i], i < 32 ? 0.0f : 0.9f * 1e-37f) << i;
  }
}

TEST_P(LambUpdateTest, WritesTheComputeCopy) {
  State state({41, 2090});
  std::vector<bf16> copied(state.value.size());
  LambUpdate args = state.arguments();
  args.compute_value = View::of(copied.data(), {static_cast<int64_t>(copied.size())});
  run(args);
  for (size_t i = 0; i < copied.size(); ++i) EXPECT_EQ(copied[i], bf16(state.value[i])) << i;
  std::vector<f16> halves(state.value.size());
  args.compute_value = View::of(halves.data(), {static_cast<int64_t>(halves.size())});
  run(args);
  for (size_t i = 0; i < halves.size(); ++i) EXPECT_EQ(halves[i], f16(state.value[i])) << i;
}

// The CUDA kernels' formulas for elements and norms, on the host, give the bits of the vector
// loops, except that instruction sets without fused multiply-adds round twice, relative to the
// added value.
void expect_formula_of_cuda(bool epsilon_inside_root) {
  State state({4100});
  state.tensors[0].weight_decay = 0.1;
  state.tensors[0].rate = 1;
  const State before = state;
  LambUpdate args = state.arguments();
  args.epsilon_inside_root = epsilon_inside_root;
  Context context = Context::cpu(1);
  lamb_update(context, args);
  const LambFactors factors(args);
  double value_square = 0, direction_square = 0;
  std::vector<float> directions, without_cancelling;
  for (size_t i = 0; i < state.value.size(); ++i) {
    const float value = before.value[i], gradient = before.gradient[i];
    const LambMoments made =
        lamb_moments({before.momentum[i], before.variance[i]}, gradient, factors);
    const float added = 0.9f * std::abs(before.momentum[i]) + 0.1f * 0.5f * std::abs(gradient);
    ASSERT_NEAR(made.momentum, state.momentum[i], 0x1p-22 * added) << i;
    ASSERT_NEAR(made.variance, state.variance[i], 0x1p-22 * made.variance) << i;
    directions.push_back(lamb_direction(value, made, 0.1f, factors));
    without_cancelling.push_back(0.1f * std::abs(value) + 3 * added / std::sqrt(7 * made.variance));
    value_square += std::pow(double{value}, 2);
    direction_square += std::pow(double{directions[i]}, 2);
  }
  const float ratio = lamb_ratio(value_square, direction_square, 0.01, 10);
  EXPECT_NEAR(ratio, state.ratio[0], 0x1p-21 * ratio);
  for (size_t i = 0; i < state.value.size(); ++i) {
    const float value = before.value[i];
    ASSERT_NEAR(value - 0.01f * ratio * directions[i], state.value[i],
                0x1p-22 * std::abs(value) + 0x1p-20 * 0.01f * ratio * without_cancelling[i])
        << i;
  }
}

TEST(LambUpdate, TheFormulaForCudaAgrees) {
  for (const int64_t target : hwy::SupportedAndGeneratedTargets()) {
    SCOPED_TRACE(hwy::TargetName(target));
    hwy::SetSupportedTargetsForTest(target);
    for (const bool inside : {false, true}) expect_formula_of_cuda(inside);
  }
  hwy::SetSupportedTargetsForTest(0);
}

ONEBIT_ON_EVERY_DEVICE(LambUpdateTest);

}  // namespace
}  // namespace onebit::updates
