// The golden trace of DeepSpeed's 1-bit LAMB: two ranks, tensors of 4 and 3 elements, padded to 16
// in one buffer, made with a model of the algorithm in double precision.
#include "tests/deepspeed/onebit_lamb.h"

#include <gtest/gtest.h>

#include "tests/deepspeed/golden_rank.h"

namespace onebit::deepspeed {
namespace {

using optim::Phase;
using optim::StepReport;

struct Row {
  double p[7];
  double coefficient[2], frozen[2];
};

constexpr Row kTrace[6] = {
    {{.49693456, .24693691, .0030606605, -.25305825, .6040447, .34594314, .095946327},
     {.096787086, .12814802},
     {.0096787086, .012814802}},
    {{.49332446, .24514428, .00060633216, -.25692179, .60865083, .34155526, .09296215},
     {.10398298, .10854458},
     {.019109136, .022387779}},
    {{.49242423, .24471348, .00019162226, -.25755831, .60963395, .34058753, .092316203},
     {.019118496, .022188072},
     {.019109136, .022387779}},
    {{.49198617, .24450384, .00039322069, -.25786751, .61011145, .34011655, .092001965},
     {.018039793, .020945252},
     {.019109136, .022387779}},
    {{.49119288, .24412422, 2.7776867e-05, -.25842841, .61094873, .33929236, .091451832},
     {.017014587, .01908453},
     {.019109136, .022387779}},
    {{.49033729, .24371478, -.0003663975, -.25903345, .61184874, .33840657, .090860561},
     {.016908965, .018898976},
     {.019109136, .022387779}}};

// The nine elements of padding after updates 3, 4 and 5: the first, and the others.
constexpr double kPadding[3][2] = {
    {.021849953, .021849953}, {-.011256864, -.00049380692}, {.021635128, .0012642623}};

OneBitLambOptions golden_options() {
  return {.adam = {.learning_rate = kGoldenRate, .weight_decay = kGoldenDecay}, .freeze_step = 3};
}

using Rank = GoldenRank<OneBitLamb, OneBitLambOptions>;

void expect_row(Rank& rank, int64_t k) {
  const Row& row = kTrace[k - 1];
  const std::vector<float> values = rank.values();
  for (size_t i = 0; i < 7; ++i) EXPECT_NEAR(values[i], row.p[i], 1e-7) << "k " << k << " i " << i;
  for (size_t tensor = 0; tensor < 2; ++tensor) {
    EXPECT_NEAR(rank.optimizer().coefficient(tensor), row.coefficient[tensor], 1e-7) << k;
    EXPECT_NEAR(rank.optimizer().frozen_ratio(tensor), row.frozen[tensor], 1e-8) << k;
  }
  if (k < 3 || k > 5) return;
  const std::vector<float>& momentum = rank.optimizer().momentum();
  ASSERT_EQ(momentum.size(), 16u);
  for (size_t i = 7; i < 16; ++i) {
    EXPECT_NEAR(momentum[i], kPadding[k - 3][i == 7 ? 0 : 1], 1e-7) << "k " << k << " i " << i;
  }
}

TEST(OneBitLamb, GoldenTrace) {
  comm::run_thread_world(2, [](comm::Communicator& communicator) {
    Rank rank(communicator, golden_options(), {4, 3});
    for (int64_t k = 1; k <= 6; ++k) {
      const StepReport report = rank.step(k);
      EXPECT_EQ(report.phase, k <= 2 ? Phase::kWarmup : Phase::kCompressed);
      EXPECT_EQ(report.froze_now, k == 2);
      expect_row(rank, k);
    }
    EXPECT_NEAR(rank.optimizer().scaling(0), 1.2914335, 1e-6);
    EXPECT_NEAR(rank.optimizer().scaling(1), .81588253, 1e-6);
  });
}

// The mean of the ratios starts at zero and is frozen without correction: after a warm-up of two
// updates it is a fifth of the ratios.
TEST(OneBitLamb, AShortWarmupFreezesRatiosThatAreTooSmall) {
  comm::run_thread_world(2, [](comm::Communicator& communicator) {
    Rank rank(communicator, golden_options(), {4, 3});
    rank.steps(1, 2);
    const double last = rank.optimizer().coefficient(0);
    rank.step(3);
    EXPECT_LT(rank.optimizer().coefficient(0), 0.2 * last);
  });
}

TEST(OneBitLamb, ResumesExactly) {
  expect_exact_resume<OneBitLamb>(golden_options(), {4, 3}, 6);
}

TEST(OneBitLamb, NotFiniteChangesNothing) {
  expect_no_change_by_nan<OneBitLamb>(golden_options(), {4, 3}, 4);
}

}  // namespace
}  // namespace onebit::deepspeed
