// Error feedback loses nothing: the sent values plus the residuals equal the inputs.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <vector>

#include "onebit/exchange/comm/thread_communicator.h"
#include "onebit/math/device/memory.h"
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

struct Averaged {
  std::vector<uint8_t> chunk;
  std::vector<float> sent, residual, momentum;
};

// An owner's step with a momentum that is at most `limit`, on what three ranks have sent.
Averaged average_with_limit(Context& context, std::vector<uint8_t>& chunks, int64_t elements,
                            float limit) {
  Averaged to{.chunk = std::vector<uint8_t>(static_cast<size_t>(chunk_bytes(elements))),
              .sent = std::vector<float>(static_cast<size_t>(elements)),
              .residual = values_of(3, 0, elements),
              .momentum = values_of(4, 0, elements)};
  ops::Mirror mirror(context);
  const auto placed = [&](auto& all) {
    return mirror(View::of(all.data(), {static_cast<int64_t>(all.size())}));
  };
  const View chunk = placed(to.chunk);
  average(context,
          {.chunks = mirror(ConstView(View::of(chunks.data(), {3, chunk_bytes(elements)}))),
           .residual = placed(to.residual),
           .still = {},
           .chunk = chunk,
           .block_squares = {},
           .momentum = placed(to.momentum),
           .step = {.beta = 0.9, .weight = 0.1, .limit = limit},
           .blocks = {0, blocks_in(elements)}});
  decode(context, {.chunk = chunk,
                   .elements = elements,
                   .still = {},
                   .values = placed(to.sent),
                   .extras = {},
                   .blocks = {0, blocks_in(elements)}});
  mirror.bring_back();
  return to;
}

// A sub-block of elements of one size has a scale of pi / 2 times that, which no element has: an
// owner sends none above its limit, and keeps the rest.
TEST(ConservationOfACodecCall, AnOwnersScalesAreAtMostItsLimit) {
  Context context = Context::cpu(1);
  const int64_t elements = 9001;
  const float limit = 0.0625f;
  std::vector<uint8_t> chunks;
  for (int rank = 0; rank < 3; ++rank) {
    std::vector<float> values = values_of(rank, 1, elements), owed = values_of(rank, 2, elements);
    std::vector<uint8_t> chunk(static_cast<size_t>(chunk_bytes(elements)));
    encode(context, {.values = View::of(values.data(), {elements}),
                     .residual = View::of(owed.data(), {elements}),
                     .still = {},
                     .extras = {},
                     .chunk = View::of(chunk.data(), {chunk_bytes(elements)}),
                     .block_squares = {},
                     .blocks = {0, blocks_in(elements)}});
    chunks.insert(chunks.end(), chunk.begin(), chunk.end());
  }
  const Averaged got = average_with_limit(context, chunks, elements, limit);
  const std::vector<float> owed = values_of(3, 0, elements);
  int64_t at_limit = 0;
  for (size_t i = 0; i < owed.size(); ++i) {
    ASSERT_LE(std::abs(got.sent[i]), limit) << i;
    if (std::abs(got.sent[i]) == limit) ++at_limit;
    const double input = double{got.momentum[i]} + double{owed[i]};
    const double bound = kEpsilon * (std::abs(input) + std::abs(double{got.residual[i]}));
    ASSERT_NEAR(double{got.sent[i]} + double{got.residual[i]}, input, bound) << i;
  }
  EXPECT_GT(at_limit, 500);
  if (memory::cuda_device_count() == 0) return;
  Context cuda = Context::cuda(0);
  const Averaged on_device = average_with_limit(cuda, chunks, elements, limit);
  EXPECT_EQ(on_device.chunk, got.chunk);
  EXPECT_EQ(on_device.residual, got.residual);
  EXPECT_EQ(on_device.momentum, got.momentum);
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
