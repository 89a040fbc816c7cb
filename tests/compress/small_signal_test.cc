// How much of a small signal in noise arrives, and when: delay reduces the learning rates at which
// Adam is stable (sign_codec.cc).
#include <gtest/gtest.h>

#include <array>
#include <random>

#include "onebit/exchange/comm/thread_communicator.h"
#include "tests/compress/run_steps.h"

namespace onebit::compress {
namespace {

constexpr int kRanks = 2, kSteps = 300, kSettling = 50;
constexpr int64_t kElements = 8192;
constexpr double kSignal = 0.4;  // its deviation, where the noise of a rank has deviation 1

std::vector<float> normal_numbers(uint64_t seed) {
  std::mt19937_64 generator(seed);
  std::normal_distribution<float> normal;
  std::vector<float> numbers(static_cast<size_t>(kElements));
  for (float& one : numbers) one = normal(generator);
  return numbers;
}

double inner_product(const std::vector<float>& left, const std::vector<float>& right) {
  double sum = 0;
  for (size_t i = 0; i < left.size(); ++i) sum += double{left[i]} * right[i];
  return sum;
}

// The share of a signal that all ranks have which arrives in the same step and in the next one,
// over the share in Adam's momentum, beta^delay (1 - beta). With beta 0 the average itself is sent.
std::array<double, 2> arriving(double beta) {
  std::array<double, 2> share{};
  comm::run_thread_world(kRanks, [&](comm::Communicator& world) {
    Context context = Context::cpu(1);
    trials::Exchange all_reduce(world, comm::Buckets(kElements, 1 << 20),
                                {.owner_momentum = beta > 0});
    std::vector<uint8_t> still;
    std::vector<float> extras, before(static_cast<size_t>(kElements));
    std::array<double, 2> sum{};
    for (int step = 0; step < kSteps; ++step) {
      const auto stream = static_cast<uint64_t>(step) * (kRanks + 1);
      const std::vector<float> signal = normal_numbers(stream);
      std::vector<float> values = normal_numbers(stream + 1 + static_cast<uint64_t>(world.rank()));
      for (size_t i = 0; i < values.size(); ++i) {
        values[i] += static_cast<float>(kSignal) * signal[i];
      }
      trials::exchange(context, all_reduce, values, still, extras, static_cast<float>(beta));
      if (step >= kSettling) {
        sum[0] += inner_product(values, signal);
        sum[1] += inner_product(values, before);
      }
      before = signal;
    }
    if (world.rank() != 0) return;
    const double whole = kSignal * kElements * (kSteps - kSettling);
    for (size_t delay = 0; delay < sum.size(); ++delay) {
      share[delay] = sum[delay] / whole / (1 - beta) / (delay == 0 || beta == 0 ? 1 : beta);
    }
  });
  return share;
}

// Two stages of signs, which pass 0.945 and 0.92 if their input is noise that differs by step.
TEST(SmallSignal, PassesNearlyWholeAtOnce) {
  const auto [at_once, next] = arriving(0);
  EXPECT_GT(at_once, 0.85);
  EXPECT_LT(at_once, 1.0);
  EXPECT_LT(next, 0.15);
}

// Without the lead 0.92 arrives in the first step.
TEST(SmallSignal, ArrivesInTheOwnersMomentumAsInAdams) {
  const auto [at_once, next] = arriving(0.9);
  EXPECT_NEAR(at_once, 1.04, 0.07);
  EXPECT_NEAR(next, 0.97, 0.07);
}

}  // namespace
}  // namespace onebit::compress
