// The golden trace of DeepSpeed's arithmetic: two ranks, one tensor of 4 elements, made with a
// model of the algorithm in double precision.
#include "tests/deepspeed/onebit_adam.h"

#include <gtest/gtest.h>

#include <cmath>

#include "onebit/comm/thread_communicator.h"
#include "tests/optim/memory_state.h"

namespace onebit::deepspeed {
namespace {

using optim::GradientNeed;
using optim::MemoryReader;
using optim::MemoryState;
using optim::Phase;
using optim::StepReport;

float golden_gradient(int rank, int64_t k, int64_t i) {
  const double even = i % 2 == 0 ? 1 : -1, second = rank == 1 ? 1 : -1;
  const int64_t cycle = ((i + 1) * (k + 1)) % 5 - 2;
  return static_cast<float>(0.1 * static_cast<double>(cycle) + 0.05 * even * second +
                            0.013 * static_cast<double>(i + 1));
}

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
  return {.adam = {.learning_rate = 1e-2, .weight_decay = 0.01},
          .freeze_step = 3,
          .scale_per_tensor = per_tensor};
}

class GoldenRank {
 public:
  GoldenRank(comm::Communicator& communicator, bool per_tensor)
      : communicator_(communicator), context_(Context::cpu(1)) {
    parameter_ = table_.add({.name = "p", .shape = {4}, .decay = true});
    table_.allocate(Device{}, DType::kF32);
    for (int i = 0; i < 4; ++i) values()[i] = 0.5f - 0.25f * static_cast<float>(i);
    optimizer_ = std::make_unique<OneBitAdam>(golden_options(per_tensor), table_, communicator);
  }

  StepReport step(int64_t k) {
    const bool averaged = optimizer_->gradient_need() == GradientNeed::kAveragedOverRanks;
    float* gradients = table_.gradient(parameter_).data<float>();
    for (int i = 0; i < 4; ++i) {
      gradients[i] = averaged ? (golden_gradient(0, k, i) + golden_gradient(1, k, i)) / 2
                              : golden_gradient(communicator_.rank(), k, i);
    }
    return optimizer_->step(context_, table_, {.step = k, .learning_rate = 1e-2});
  }

  float* values() { return table_.value(parameter_).data<float>(); }
  Context& context() { return context_; }
  params::Table& table() { return table_; }
  OneBitAdam& optimizer() { return *optimizer_; }

 private:
  comm::Communicator& communicator_;
  Context context_;
  params::Table table_;
  int parameter_ = 0;
  std::unique_ptr<OneBitAdam> optimizer_;
};

TEST(OneBitAdam, GoldenTrace) {
  for (const bool per_tensor : {true, false}) {
    comm::run_thread_world(2, [per_tensor](comm::Communicator& communicator) {
      GoldenRank rank(communicator, per_tensor);
      for (int64_t k = 1; k <= 5; ++k) {
        const StepReport report = rank.step(k);
        EXPECT_EQ(report.phase, k <= 2 ? Phase::kWarmup : Phase::kCompressed);
        EXPECT_EQ(report.froze_now, k == 2);
        for (int i = 0; i < 4; ++i) {
          EXPECT_NEAR(rank.values()[i], kTrace[k - 1].p[i], 1e-6) << "p, k " << k << " i " << i;
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
  for (const int64_t at : {1, 2, 3, 4}) {
    std::vector<MemoryState> saved(2);
    std::vector<std::vector<float>> values(2), ends(2);
    comm::run_thread_world(2, [&](comm::Communicator& communicator) {
      const auto self = static_cast<size_t>(communicator.rank());
      GoldenRank rank(communicator, true);
      for (int64_t k = 1; k <= at; ++k) rank.step(k);
      rank.optimizer().save(saved[self]);
      values[self].assign(rank.values(), rank.values() + 4);
      for (int64_t k = at + 1; k <= 6; ++k) rank.step(k);
      ends[self].assign(rank.values(), rank.values() + 4);
    });
    comm::run_thread_world(2, [&](comm::Communicator& communicator) {
      const auto self = static_cast<size_t>(communicator.rank());
      GoldenRank rank(communicator, true);
      std::copy(values[self].begin(), values[self].end(), rank.values());
      rank.optimizer().load(rank.context(), rank.table(), MemoryReader(saved));
      for (int64_t k = at + 1; k <= 6; ++k) rank.step(k);
      EXPECT_EQ(std::vector<float>(rank.values(), rank.values() + 4), ends[self]) << "at " << at;
    });
  }
}

TEST(OneBitAdam, NotFiniteChangesNothing) {
  comm::run_thread_world(2, [](comm::Communicator& communicator) {
    GoldenRank rank(communicator, true);
    for (int64_t k = 1; k <= 3; ++k) rank.step(k);
    MemoryState before, after;
    rank.optimizer().save(before);
    const std::vector<float> values(rank.values(), rank.values() + 4);
    float* gradients = rank.table().gradients().data<float>();
    gradients[1] = communicator.rank() == 1 ? NAN : 0.5f;
    const StepReport report =
        rank.optimizer().step(rank.context(), rank.table(), {.step = 4, .learning_rate = 1e-2});
    EXPECT_FALSE(report.applied);
    rank.optimizer().save(after);
    EXPECT_EQ(after, before);
    EXPECT_EQ(std::vector<float>(rank.values(), rank.values() + 4), values);
  });
}

}  // namespace
}  // namespace onebit::deepspeed
