// What ranks owe goes where it is owed, not only in the right amount.
#include <gtest/gtest.h>

#include <cmath>

#include "onebit/comm/bucket.h"
#include "tests/optim/trial.h"

namespace onebit::optim {
namespace {

using Flat = std::vector<double>;

// What all ranks together owe each element and its momentum, from the layout of the files alone:
// the mean of the worker residuals, and of what owners keep the chunks in the order of their
// buckets.
struct Kept {
  Flat owed, momentum;
};

Kept kept_by(const std::vector<MemoryState>& states, int64_t elements, int64_t bucket_bytes) {
  const auto ranks = static_cast<int>(states.size());
  Kept kept{Flat(static_cast<size_t>(elements)), Flat(static_cast<size_t>(elements))};
  if (ranks == 1) {
    const auto& momentum = states[0].replicated_buffers.at("momentum");
    std::copy(momentum.begin(), momentum.end(), kept.momentum.begin());
    return kept;
  }
  const comm::Buckets buckets(elements, bucket_bytes);
  for (int rank = 0; rank < ranks; ++rank) {
    const auto& own = states[static_cast<size_t>(rank)].own_buffers;
    for (size_t i = 0; i < kept.owed.size(); ++i)
      kept.owed[i] += double{own.at("worker_residual")[i]} / ranks;
    // A rank that owns no chunk has none.
    const auto of_owner = [&](const char* name) {
      const auto found = own.find(name);
      return found == own.end() ? std::vector<float>() : found->second;
    };
    const std::vector<float> server = of_owner("server_residual");
    const std::vector<float> momentum = of_owner("owner_momentum");
    size_t next = 0;
    for (int64_t bucket = 0; bucket < buckets.count(); ++bucket) {
      const comm::Range chunk = comm::chunk_of(buckets.range(bucket), ranks, rank);
      for (int64_t i = chunk.begin; i < chunk.end; ++i, ++next) {
        kept.owed[static_cast<size_t>(i)] += double{server.at(next)};
        kept.momentum[static_cast<size_t>(i)] = double{momentum.at(next)};
      }
    }
    EXPECT_EQ(next, server.size());
  }
  return kept;
}

TEST(ResidualPlacement, IsKeptOnAnotherNumberOfRanks) {
  constexpr int64_t kFreeze = 8;
  const TrialOptions options{
      .optimizer = {.type = OptimizerType::kOneBitAdam, .freeze_step = kFreeze}};
  const auto saved = on_ranks(3, options, [](Trial& trial) {
    trial.steps(kFreeze + 4);
    return std::pair(trial.save(), trial.values());
  });
  const std::vector<MemoryState> states{saved[0].first, saved[1].first, saved[2].first};
  const auto elements = static_cast<int64_t>(saved[0].second.size());
  const Kept before = kept_by(states, elements, options.run.bucket_bytes);
  for (const int world_size : {1, 2, 5}) {
    const auto loaded = on_ranks(world_size, options, [&](Trial& trial) {
      trial.load(states, saved[0].second, kFreeze + 5);
      return trial.save();
    });
    const Kept now = kept_by(loaded, elements, options.run.bucket_bytes);
    double largest = 0;
    for (size_t i = 0; i < before.owed.size(); ++i) {
      // One rank has paid what was owed into its momentum, as the gradient that it is.
      const double paid = world_size == 1 ? before.owed[i] : 0;
      ASSERT_NEAR(now.owed[i] + paid, before.owed[i], 1e-6 * (std::abs(before.owed[i]) + 0.1))
          << i << " on " << world_size << " ranks";
      ASSERT_NEAR(now.momentum[i], before.momentum[i] + 0.1 * paid,
                  1e-6 * (std::abs(before.momentum[i]) + 0.1 * std::abs(paid) + 0.1))
          << i << " on " << world_size << " ranks";
      largest = std::max(largest, std::abs(before.owed[i]));
    }
    EXPECT_GT(largest, 1e-2);
  }
}

}  // namespace
}  // namespace onebit::optim
