// Error feedback loses nothing: the sent values plus the residuals equal the inputs.
#include <gtest/gtest.h>

#include <cmath>

#include "onebit/exchange/comm/thread_communicator.h"
#include "tests/compress/owned_parts.h"
#include "tests/compress/run_steps.h"

namespace onebit::compress {
namespace {

using comm::Communicator;
using trials::Outcome;
using trials::Plan;
using trials::run_steps;
using trials::still_of;
using trials::values_of;

constexpr double kEpsilon = 0x1p-24;

// After any number of steps: sum of averages + mean worker residual + server residual = sum of the
// mean inputs of the ranks.
class Conservation : public ::testing::TestWithParam<int> {};

TEST_P(Conservation, HoldsForEveryElementOverManySteps) {
  const int ranks = GetParam();
  const Plan plan{.elements = 13000, .steps = 12, .options = {}};
  const auto elements = static_cast<size_t>(plan.elements);
  const Ownership cut{comm::Buckets(plan.elements, plan.bucket_bytes), ranks};
  std::vector<Outcome> outcomes(static_cast<size_t>(ranks));
  comm::run_thread_world(ranks, [&](Communicator& world) {
    outcomes[static_cast<size_t>(world.rank())] = run_steps(world, plan);
  });
  std::vector<float> server(elements), server_sizes(elements);
  std::vector<double> came(elements), left(elements), sizes(elements);
  for (int rank = 0; rank < ranks; ++rank) {
    const Outcome& outcome = outcomes[static_cast<size_t>(rank)];
    trials::put_owned_part(cut, rank, outcome.server, server);
    trials::put_owned_part(cut, rank, outcome.server_sizes, server_sizes);
    for (int step = 0; step < plan.steps; ++step) {
      const std::vector<float> values = values_of(rank, step, plan.elements);
      for (size_t i = 0; i < elements; ++i) {
        came[i] += static_cast<double>(values[i]) / ranks;
        sizes[i] += std::abs(static_cast<double>(values[i])) / ranks;
      }
    }
    for (size_t i = 0; i < elements; ++i) {
      left[i] += static_cast<double>(outcome.worker[i]) / ranks;
      sizes[i] += 2 * static_cast<double>(outcome.worker_sizes[i]) / ranks;
    }
  }
  for (size_t i = 0; i < elements; ++i) {
    left[i] += static_cast<double>(server[i]);
    sizes[i] += 2 * static_cast<double>(server_sizes[i]);
    for (const std::vector<float>& average : outcomes[0].averages) {
      left[i] += static_cast<double>(average[i]);
      sizes[i] += std::abs(static_cast<double>(average[i]));
    }
    // A step rounds c and c - sent on both sides and the sum over ranks: at most ranks + 6
    // roundings, of numbers no larger than the step's value, its average and the residuals before
    // and after it, which `sizes` adds up. A sent value may be returned later without a trace in
    // the averages, if a server finds it too small for a code.
    const double bound = (ranks + 6) * kEpsilon * sizes[i];
    ASSERT_NEAR(left[i], came[i], bound) << "element " << i;
  }
}

INSTANTIATE_TEST_SUITE_P(Ranks, Conservation, ::testing::Values(1, 2, 3, 5, 8));

TEST(ConservationOfACodecCall, SentPlusResidualIsTheInput) {
  Context context = Context::cpu(1);
  const int64_t elements = 9001;
  std::vector<float> values = values_of(0, 0, elements), residual = values_of(1, 0, elements);
  const std::vector<float> owed = residual;
  std::vector<uint8_t> chunk(static_cast<size_t>(chunk_bytes(elements)));
  std::vector<float> sent(values.size());
  const auto flat = [](auto& all) {
    return View::of(all.data(), {static_cast<int64_t>(all.size())});
  };
  encode(context, {.values = flat(values),
                   .residual = flat(residual),
                   .still = {},
                   .extras = {},
                   .chunk = flat(chunk),
                   .block_squares = {},
                   .blocks = {0, blocks_in(elements)}});
  decode(context, {.chunk = flat(chunk),
                   .elements = elements,
                   .still = {},
                   .values = flat(sent),
                   .extras = {},
                   .blocks = {0, blocks_in(elements)}});
  for (size_t i = 0; i < values.size(); ++i) {
    const double input = static_cast<double>(values[i]) + static_cast<double>(owed[i]);
    // One rounding of the sum, one of the difference.
    const double bound = kEpsilon * (std::abs(input) + std::abs(static_cast<double>(residual[i])));
    ASSERT_NEAR(static_cast<double>(sent[i]) + static_cast<double>(residual[i]), input, bound) << i;
  }
}

TEST(StillEntries, OweNothingAndReceiveNothing) {
  const Plan plan{.elements = 13000, .steps = 3, .still = true, .options = {}};
  const std::vector<uint8_t> still = still_of(plan.elements);
  comm::run_thread_world(3, [&](Communicator& world) {
    const Outcome outcome = run_steps(world, plan);
    for (int64_t i = 0; i < plan.elements; ++i) {
      if (!(still[static_cast<size_t>(i / 8)] >> (i % 8) & 1)) continue;
      ASSERT_EQ(outcome.worker[static_cast<size_t>(i)], 0.0f);
      for (const auto& average : outcome.averages) {
        ASSERT_EQ(average[static_cast<size_t>(i)], 0.0f);
      }
    }
  });
}

}  // namespace
}  // namespace onebit::compress
