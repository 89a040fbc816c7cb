// DeepSpeed's golden example: two ranks, ten elements padded to sixteen, the same inputs twice.
#include "tests/deepspeed/all_reduce.h"

#include <gtest/gtest.h>

#include <array>

#include "onebit/exchange/comm/thread_communicator.h"

namespace onebit::deepspeed {
namespace {

using comm::Communicator;
using Bytes = std::vector<uint8_t>;

const std::array<std::vector<float>, 2> kInputs{
    {{1, -2, 3, -4, 5, -6, 7, -8, 9, -10}, {-1, -2, 0, 4, 5, 6, -7, -8, 0.5f, 2}}};

template <typename Expected, typename Actual>
void expect_close(const Expected& expected, const Actual& actual, const char* what) {
  ASSERT_EQ(std::size(expected), std::size(actual)) << what;
  for (size_t i = 0; i < std::size(expected); ++i) {
    // The golden values have seven digits.
    EXPECT_NEAR(actual[i], expected[i], 1e-6 * std::max(1.0, std::abs(double{expected[i]})))
        << what << " " << i;
  }
}

Bytes bytes_of(std::span<const uint8_t> bytes) {
  return {bytes.begin(), bytes.end()};
}

void check_first_call(Communicator& world, AllReduce& all_reduce,
                      const std::vector<float>& values) {
  const double s0 = 3.0214079913179552, s1 = 3.9522579338695794;
  expect_close(std::array{s0, -s0, s0, -s0, s0, -s0, s0, -s0, s1, -s1}, values, "result");
  if (world.rank() == 0) {
    EXPECT_NEAR(all_reduce.worker_scale(), 4.905354217587146, 1e-6);
    EXPECT_NEAR(all_reduce.server_scale(), s0, 1e-6);
    EXPECT_EQ(bytes_of(all_reduce.worker_signs()), (Bytes{170, 191}));
    EXPECT_EQ(bytes_of(all_reduce.server_signs()), (Bytes{170}));
    constexpr double kPad = -4.905354;
    expect_close(
        std::array{-3.905354, 2.905354, -1.905354, .9053542, .09464578, -1.094646, 2.094646,
                   -3.094646, 4.094646, -5.094646, kPad, kPad, kPad, kPad, kPad, kPad},
        all_reduce.worker_residual(), "worker residual");
    expect_close(
        std::array{-2.33318, -1.195718, 1.195718, 2.33318, 1.195718, 2.33318, -2.33318, -1.195718},
        all_reduce.server_residual(), "server residual");
  } else {
    EXPECT_NEAR(all_reduce.worker_scale(), 3.528898553373276, 1e-6);
    EXPECT_NEAR(all_reduce.server_scale(), s1, 1e-6);
    EXPECT_EQ(bytes_of(all_reduce.worker_signs()), (Bytes{60, 255}));
    EXPECT_EQ(bytes_of(all_reduce.server_signs()), (Bytes{191}));
    constexpr double kRest = .2648685;
    expect_close(std::array{kRest, 3.26403, kRest, kRest, kRest, kRest, kRest, kRest},
                 all_reduce.server_residual(), "server residual");
  }
}

void check_second_call(Communicator& world, AllReduce& all_reduce,
                       const std::vector<float>& values) {
  const double s0 = 4.137373184961821, s1 = 5.409974917899169;
  expect_close(std::array{-s0, -s0, s0, s0, s0, s0, -s0, -s0, s1, s1}, values, "result");
  const bool first = world.rank() == 0;
  EXPECT_NEAR(all_reduce.worker_scale(), first ? 7.270755085146023 : 5.562971358798477, 2e-6);
  EXPECT_NEAR(all_reduce.server_scale(), first ? s0 : s1, 2e-6);
  EXPECT_EQ(bytes_of(all_reduce.worker_signs()), first ? (Bytes{106, 128}) : (Bytes{156, 64}));
  EXPECT_EQ(bytes_of(all_reduce.server_signs()), first ? Bytes{60} : Bytes{192});
}

TEST(AllReduce, FollowsTheGoldenExample) {
  comm::run_thread_world(2, [](Communicator& world) {
    AllReduce all_reduce(world, 10);
    std::vector<float> values = kInputs[static_cast<size_t>(world.rank())];
    all_reduce.run(values);
    check_first_call(world, all_reduce, values);
    values = kInputs[static_cast<size_t>(world.rank())];
    all_reduce.run(values);
    check_second_call(world, all_reduce, values);
  });
}

TEST(AllReduce, PadsAsTheOriginal) {
  const std::array<std::pair<int, int64_t>, 8> units{
      {{1, 8}, {2, 16}, {3, 72}, {4, 32}, {5, 200}, {6, 144}, {7, 392}, {8, 64}}};
  for (const auto& [world_size, unit] : units) {
    EXPECT_EQ(padded_elements(1, world_size), unit);
    EXPECT_EQ(padded_elements(unit, world_size), unit);
    EXPECT_EQ(padded_elements(unit + 1, world_size), 2 * unit);
  }
}

TEST(AllReduce, EveryRankEndsWithTheSameBits) {
  std::vector<std::vector<float>> results(7);
  comm::run_thread_world(7, [&](Communicator& world) {
    AllReduce all_reduce(world, 1000);
    std::vector<float> values;
    for (int i = 0; i < 1000; ++i) {
      values.push_back(static_cast<float>((i * 37 + world.rank() * 11) % 101 - 50));
    }
    all_reduce.run(values);
    results[static_cast<size_t>(world.rank())] = values;
  });
  for (const std::vector<float>& result : results) EXPECT_EQ(result, results[0]);
}

}  // namespace
}  // namespace onebit::deepspeed
