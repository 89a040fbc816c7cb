// What ranks owe goes where it is owed, not only in the right amount.
#include <gtest/gtest.h>

#include <cmath>

#include "onebit/comm/bucket.h"
#include "tests/optim/trial.h"

namespace onebit::optim {
namespace {

using Flat = std::vector<double>;

// What all ranks together owe each element, from the layout of the files alone: the mean of the
// worker residuals, and of each server residual the chunks in the order of their buckets.
Flat owed_by(const std::vector<MemoryState>& states, int64_t elements, int64_t bucket_bytes) {
  const auto ranks = static_cast<int>(states.size());
  Flat owed(static_cast<size_t>(elements));
  const comm::Buckets buckets(elements, bucket_bytes);
  for (int rank = 0; rank < ranks; ++rank) {
    const auto& own = states[static_cast<size_t>(rank)].own_buffers;
    for (size_t i = 0; i < owed.size(); ++i)
      owed[i] += double{own.at("worker_residual")[i]} / ranks;
    // A rank that owns no chunk has none.
    const auto found = own.find("server_residual");
    const std::vector<float> server = found == own.end() ? std::vector<float>() : found->second;
    size_t next = 0;
    for (int64_t bucket = 0; bucket < buckets.count(); ++bucket) {
      const comm::Range chunk = comm::chunk_of(buckets.range(bucket), ranks, rank);
      for (int64_t i = chunk.begin; i < chunk.end; ++i) {
        owed[static_cast<size_t>(i)] += double{server.at(next++)};
      }
    }
    EXPECT_EQ(next, server.size());
  }
  return owed;
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
  const Flat owed = owed_by(states, elements, options.run.bucket_bytes);
  for (const int world_size : {1, 2, 5}) {
    const auto loaded = on_ranks(world_size, options, [&](Trial& trial) {
      trial.load(states, saved[0].second, kFreeze + 5);
      return trial.save();
    });
    // One rank has paid it into the momentum.
    const Flat now =
        world_size > 1 ? owed_by(loaded, elements, options.run.bucket_bytes) : Flat(owed.size());
    const auto& before = states[0].replicated_buffers.at("momentum");
    const auto& after = loaded[0].replicated_buffers.at("momentum");
    double largest = 0;
    for (size_t i = 0; i < owed.size(); ++i) {
      const double paid = double{after[i]} - before[i];
      ASSERT_NEAR(now[i] + paid, owed[i], 1e-6 * (std::abs(owed[i]) + std::abs(before[i]) + 0.1))
          << i << " on " << world_size << " ranks";
      largest = std::max(largest, std::abs(owed[i]));
    }
    EXPECT_GT(largest, 1e-2);
  }
}

}  // namespace
}  // namespace onebit::optim
