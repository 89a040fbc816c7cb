#include "onebit/exchange/optim/gradient_clipper.h"
#include "onebit/ground/base/json.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <limits>
#include <vector>

#include "onebit/exchange/comm/thread_communicator.h"

namespace onebit::optim {
namespace {

using Values = std::array<float, 4>;

ConstView view_of(const Values& values) {
  return ConstView::of(values.data(), {4});
}

TEST(GradientClipper, NormOfTheAverage) {
  const auto world = comm::make_single_rank();
  Context context = Context::cpu(1);
  GradientClipper clipper(2.5);
  const Values gradients{3, 0, 4, 0};
  const GradientNorm norm =
      clipper.agree(context, *world, view_of(gradients), GradientNeed::kAveragedOverRanks);
  EXPECT_TRUE(norm.finite);
  EXPECT_DOUBLE_EQ(norm.norm, 5);
  EXPECT_DOUBLE_EQ(norm.coefficient, 0.5);
  // The loss scale is removed before the comparison with the threshold.
  const GradientNorm unscaled =
      clipper.agree(context, *world, view_of(gradients), GradientNeed::kAveragedOverRanks, 0.25);
  EXPECT_DOUBLE_EQ(unscaled.norm, 1.25);
  EXPECT_DOUBLE_EQ(unscaled.coefficient, 1);
}

TEST(GradientClipper, NoThresholdNeverClips) {
  const auto world = comm::make_single_rank();
  Context context = Context::cpu(1);
  GradientClipper clipper(0);
  const GradientNorm norm =
      clipper.agree(context, *world, view_of({1e6f, 0, 0, 0}), GradientNeed::kAveragedOverRanks);
  EXPECT_DOUBLE_EQ(norm.coefficient, 1);
  const GradientNorm nothing =
      clipper.agree(context, *world, view_of({0, 0, 0, 0}), GradientNeed::kAveragedOverRanks);
  EXPECT_EQ(nothing.norm, 0);
  EXPECT_EQ(nothing.coefficient, 1);
}

// Two ranks with opposite second halves: the average has norm 3, each local one 5.
TEST(GradientClipper, LocalNormsAreMeasuredInTheWarmup) {
  comm::run_thread_world(2, [](comm::Communicator& communicator) {
    Context context = Context::cpu(1);
    GradientClipper clipper(1.5);
    const float sign = communicator.rank() == 0 ? 1.0f : -1.0f;
    const Values local{3, 0, 4 * sign, 0}, average{3, 0, 0, 0};
    for (int step = 0; step < 3; ++step) {
      clipper.observe_local_gradients(context, view_of(local), {2, 4});
      clipper.observe_local_gradients(context, view_of(local), {0, 2});
      const GradientNorm norm =
          clipper.agree(context, communicator, view_of(average), GradientNeed::kAveragedOverRanks);
      EXPECT_DOUBLE_EQ(norm.norm, 3);
      EXPECT_DOUBLE_EQ(norm.coefficient, 0.5);
    }
    EXPECT_DOUBLE_EQ(clipper.ratio(), 0.6);
    // The same gradients afterwards, local: the same estimate and the same coefficient.
    const GradientNorm norm =
        clipper.agree(context, communicator, view_of(local), GradientNeed::kLocalOnly);
    EXPECT_NEAR(norm.norm, 3, 1e-12);
    EXPECT_NEAR(norm.coefficient, 0.5, 1e-12);
    GradientClipper resumed(1.5);
    resumed.load(Json::parse(clipper.save(2).dump()), 2);
    EXPECT_EQ(resumed.ratio(), clipper.ratio());
    clipper.follow(0.8);
    EXPECT_EQ(clipper.ratio(), 0.8);
    clipper.follow(0);  // not known
    EXPECT_EQ(clipper.ratio(), 0.8);
  });
}

// Two ranks have opposite signs in a bucket: its average is 0, but the sent values are not.
TEST(GradientClipper, LimitsBucketsBySharesOfLocalGradients) {
  constexpr int64_t kBlock = comm::kBlockElements;
  comm::run_thread_world(2, [](comm::Communicator& communicator) {
    Context context = Context::cpu(1);
    const float sign = communicator.rank() == 0 ? 1.0f : -1.0f;
    std::vector<float> local(2 * kBlock, 0.0f), average(2 * kBlock, 0.0f);
    local[0] = average[0] = 3;
    local[kBlock] = 4 * sign;
    const auto view = [](const std::vector<float>& values) {
      return ConstView::of(values.data(), {static_cast<int64_t>(values.size())});
    };
    GradientClipper clipper(1.5);
    clipper.follow_buckets(comm::Buckets(2 * kBlock, 4 * kBlock));
    const auto warm_up = [&] {
      // Any ranges, which need not be the buckets'.
      clipper.observe_local_gradients(context, view(local), {kBlock - 5, 2 * kBlock});
      clipper.observe_local_gradients(context, view(local), {0, kBlock - 5});
      clipper.agree(context, communicator, view(average), GradientNeed::kAveragedOverRanks);
    };
    const auto compressed = [&] {
      return clipper.agree(context, communicator, view(local), GradientNeed::kLocalOnly);
    };
    for (int step = 0; step < 6; ++step) warm_up();
    EXPECT_TRUE(clipper.norm_limits().empty());
    EXPECT_EQ(clipper.steps_missing(), 4);
    for (int step = 0; step < 4; ++step) EXPECT_NEAR(compressed().coefficient, 0.5, 1e-12);
    // The ratio is 0.6, so the limit of the whole is 2.5 instead of 5. The last bucket is first.
    const auto expect_limits = [](GradientClipper& of) {
      ASSERT_EQ(of.norm_limits().size(), 2u);
      EXPECT_NEAR(of.norm_limits()[0], 2, 1e-12);
      EXPECT_NEAR(of.norm_limits()[1], 1.5, 1e-12);
    };
    expect_limits(clipper);
    // On other ranks the share of noise is the same: 1 / ratio^2 - 1 is (ranks - 1) times it.
    GradientClipper resumed(1.5), exact(1.5);
    for (const int ranks : {2, 3}) {
      resumed = GradientClipper(1.5);
      resumed.follow_buckets(comm::Buckets(2 * kBlock, 4 * kBlock));
      resumed.load(Json::parse(clipper.save(2).dump()), ranks);
      EXPECT_NEAR(resumed.norm_limits()[0] / resumed.norm_limits()[1], 4.0 / 3, 1e-12);
    }
    exact.load(Json::parse(clipper.save(2).dump()), 2);
    EXPECT_TRUE(exact.norm_limits().empty());
    EXPECT_EQ(exact.steps_missing(), 0);
    resumed.load(Json::parse(exact.save(2).dump()), 2);
    EXPECT_TRUE(resumed.norm_limits().empty());
    EXPECT_EQ(resumed.steps_missing(), 10);
    // Limited steps reveal the squares of the buckets.
    for (int step = 0; step < 10; ++step) resumed.follow(0.6, std::vector<double>{16, 9});
    expect_limits(resumed);
  });
}

// The share s of noise in the average is what lasts: ratio = 1 / sqrt(1 + s (ranks - 1)).
TEST(GradientClipper, KeepsTheShareOfNoiseOnOtherRanks) {
  const double share = 0.8;
  const auto ratio_of = [&](int ranks) { return 1 / std::sqrt(1 + share * (ranks - 1)); };
  for (const int saved : {2, 8}) {
    GradientClipper clipper(1);
    clipper.follow(ratio_of(saved));
    const Json state = Json::parse(clipper.save(saved).dump());
    for (const int now : {1, 2, 4, 8}) {
      GradientClipper resumed(1);
      resumed.load(state, now);
      EXPECT_NEAR(resumed.ratio(), ratio_of(now), 1e-12) << saved << " to " << now;
    }
  }
  // One rank cannot distinguish noise from signal: the norm is over-estimated until it is measured.
  GradientClipper alone(1), resumed(1);
  resumed.load(Json::parse(alone.save(1).dump()), 4);
  EXPECT_EQ(resumed.ratio(), 1);
}

TEST(GradientClipper, EveryRankLearnsWhoIsNotFinite) {
  for (const float bad :
       {std::numeric_limits<float>::infinity(), std::numeric_limits<float>::quiet_NaN()}) {
    comm::run_thread_world(3, [bad](comm::Communicator& communicator) {
      Context context = Context::cpu(1);
      GradientClipper clipper(1);
      const Values gradients{1, communicator.rank() > 0 ? bad : 0, 0, 0};
      const GradientNorm norm =
          clipper.agree(context, communicator, view_of(gradients), GradientNeed::kLocalOnly);
      EXPECT_FALSE(norm.finite);
      EXPECT_EQ(norm.first_bad_rank, 1);
      EXPECT_EQ(norm.coefficient, 1);
    });
  }
}

// Its second moments would overflow f32, as in the compressed phase.
TEST(GradientClipper, AGradientBeyondTheLargestNormIsNotFinite) {
  const auto world = comm::make_single_rank();
  Context context = Context::cpu(1);
  GradientClipper clipper(0);
  const Values gradients{1, -2e15f, 0, 0};
  for (const GradientNeed need : {GradientNeed::kLocalOnly, GradientNeed::kAveragedOverRanks}) {
    EXPECT_FALSE(clipper.agree(context, *world, view_of(gradients), need).finite);
    EXPECT_TRUE(clipper.agree(context, *world, view_of(gradients), need, 0.1).finite);
  }
}

TEST(GradientClipper, NamesTheTensor) {
  ParameterTable table;
  table.add({.name = "first", .shape = {3}});
  const int second = table.add({.name = "second", .shape = {2, 2}});
  table.allocate(Device{}, DType::kF32);
  EXPECT_EQ(first_non_finite(table), "");
  table.gradient(second).data<float>()[1] = 1e14f;
  EXPECT_EQ(first_non_finite(table), "");
  EXPECT_EQ(first_non_finite(table, 100), "second[1] = 100000000000000");
  table.gradient(second).data<float>()[2] = -std::numeric_limits<float>::infinity();
  EXPECT_EQ(first_non_finite(table), "second[2] = -inf");
}

}  // namespace
}  // namespace onebit::optim
