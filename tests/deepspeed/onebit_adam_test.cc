// The golden trace of DeepSpeed's arithmetic: two ranks, one tensor of 4 elements, made with a
// model of the algorithm in double precision.
#include "tests/deepspeed/onebit_adam.h"

#include <gtest/gtest.h>

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

TEST(OneBitAdam, GoldenTrace) {
  for (const bool per_tensor : {true, false}) {
    comm::run_thread_world(2, [per_tensor](comm::Communicator& communicator) {
      Rank rank(communicator, golden_options(per_tensor), {4});
      for (int64_t k = 1; k <= 5; ++k) {
        const StepReport report = rank.step(k);
        EXPECT_EQ(report.phase, k <= 2 ? Phase::kWarmup : Phase::kCompressed);
        EXPECT_EQ(report.froze_now, k == 2);
        const std::vector<float> values = rank.values();
        for (size_t i = 0; i < 4; ++i) {
          EXPECT_NEAR(values[i], kTrace[k - 1].p[i], 1e-6) << "p, k " << k << " i " << i;
          const float m = rank.optimizer().moments().momentum.data<float>()[i];
          EXPECT_NEAR(m, kTrace[k - 1].m[i], 1e-6) << "m, k " << k << " i " << i;
        }
      }
      const double frozen[4] = {1.2937831e-05, 5.6500924e-05, 6.0838279e-05, 2.5784896e-05};
      for (int i = 0; i < 4; ++i) {
        EXPECT_NEAR(rank.optimizer().moments().variance.data<float>()[i], frozen[i], 1e-11);
      }
    });
  }
}

TEST(OneBitAdam, ResumesExactly) {
  expect_exact_resume<OneBitAdam>(golden_options(true), {4}, 6);
}

TEST(OneBitAdam, NotFiniteChangesNothing) {
  expect_no_change_by_nan<OneBitAdam>(golden_options(true), {4}, 4);
}

}  // namespace
}  // namespace onebit::deepspeed
