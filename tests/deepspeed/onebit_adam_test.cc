// The golden trace of DeepSpeed's arithmetic: two ranks, one tensor of 4 elements, made with a
// model of the algorithm in double precision.
#include "tests/deepspeed/onebit_adam.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "tests/deepspeed/golden_rank.h"

namespace onebit::deepspeed {
namespace {

using optim::Phase;
using optim::StepReport;

struct Row {
  double p[4], m[4];
};

constexpr Row kTrace[5] = {
    {{0.46832799, 0.21835227, 0.031622613, -0.28159771}, {0.0013, 0.0226, -0.0061, 0.0152}},
    {{0.4336127, 0.20111548, 0.0080165827, -0.31875033}, {0.01247, 0.01294, 0.01841, 0.01888}},
    {{0.40016217, 0.18510923, -0.0073899633, -0.34238245},
     {0.012016326, 0.012016326, 0.012016326, 0.012016326}},
    {{0.37351413, 0.1978233, -0.019659533, -0.3235004},
     {0.0095707179, -0.0095707179, 0.0095707179, -0.0095707179}},
    {{0.35447246, 0.18870949, -0.010893711, -0.33692978},
     {0.0068357203, 0.0068357203, -0.0068357203, 0.0068357203}}};

OneBitAdamOptions golden_options(bool per_tensor) {
  return {.adam = {.learning_rate = kGoldenRate, .weight_decay = kGoldenDecay},
          .freeze_step = 3,
          .scale_per_tensor = per_tensor};
}

using Rank = GoldenRank<OneBitAdam, OneBitAdamOptions>;

// The momentum of every element of the tensors, in order.
std::vector<float> momentum_of(Rank& rank) {
  const float* momentum = rank.optimizer().moments().momentum.data<float>();
  std::vector<float> all;
  for (const Parameter& parameter : rank.table().parameters()) {
    const float* first = momentum + parameter.range.begin;
    all.insert(all.end(), first, first + parameter.declaration.shape.elements());
  }
  return all;
}

TEST(OneBitAdam, GoldenTrace) {
  comm::run_thread_world(2, [](comm::Communicator& communicator) {
    Rank rank(communicator, golden_options(true), {4});
    for (int64_t k = 1; k <= 5; ++k) {
      const StepReport report = rank.step(k);
      EXPECT_EQ(report.phase, k <= 2 ? Phase::kWarmup : Phase::kCompressed);
      EXPECT_EQ(report.froze_now, k == 2);
      const std::vector<float> values = rank.values(), momentum = momentum_of(rank);
      for (size_t i = 0; i < 4; ++i) {
        EXPECT_NEAR(values[i], kTrace[k - 1].p[i], 1e-6) << "p, k " << k << " i " << i;
        EXPECT_NEAR(momentum[i], kTrace[k - 1].m[i], 1e-6) << "m, k " << k << " i " << i;
      }
    }
    const double frozen[4] = {1.2937831e-05, 5.6500924e-05, 6.0838279e-05, 2.5784896e-05};
    for (int i = 0; i < 4; ++i) {
      EXPECT_NEAR(rank.optimizer().moments().variance.data<float>()[i], frozen[i], 1e-11);
    }
  });
}

// The largest difference between the trace's momentum of four elements and that in tensors of
// `sizes`.
double distance_from_trace(bool per_tensor, const std::vector<int64_t>& sizes) {
  double distance = 0;
  comm::run_thread_world(2, [&](comm::Communicator& communicator) {
    Rank rank(communicator, golden_options(per_tensor), sizes);
    double own = 0;
    for (int64_t k = 1; k <= 5; ++k) {
      rank.step(k);
      const std::vector<float> momentum = momentum_of(rank);
      for (size_t i = 0; i < 4; ++i) {
        own = std::max(own, std::abs(momentum[i] - kTrace[k - 1].m[i]));
      }
    }
    if (communicator.rank() == 0) distance = own;
  });
  return distance;
}

// With one scale per tensor, a second tensor does not change the first. With one for the group, two
// tensors equal a single one of their total length.
TEST(OneBitAdam, ScalesBelongToATensorOrToTheGroup) {
  EXPECT_LT(distance_from_trace(true, {4, 3}), 1e-6);
  EXPECT_GT(distance_from_trace(false, {4, 3}), 1e-4);
  EXPECT_LT(distance_from_trace(false, {2, 2}), 1e-6);
  EXPECT_GT(distance_from_trace(true, {2, 2}), 1e-4);
}

TEST(OneBitAdam, ResumesExactly) {
  expect_exact_resume<OneBitAdam>(golden_options(true), {4}, 6);
}

TEST(OneBitAdam, NotFiniteChangesNothing) {
  expect_no_change_by_nan<OneBitAdam>(golden_options(true), {4}, 4);
}

}  // namespace
}  // namespace onebit::deepspeed
