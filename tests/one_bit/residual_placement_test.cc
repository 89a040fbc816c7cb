// Residuals are assigned to the right elements, not only in the right amount.
#include <gtest/gtest.h>

#include <cmath>

#include "onebit/exchange/comm/bucket.h"
#include "onebit/exchange/compress/compressed_all_reduce.h"
#include "onebit/exchange/one_bit/onebit_adam.h"
#include "onebit/exchange/one_bit/owned_momentum.h"
#include "onebit/exchange/one_bit/zero_one_adam.h"
#include "onebit/ground/base/error.h"
#include "tests/optim/trial.h"

namespace onebit::optim {
namespace {

using Flat = std::vector<double>;

// The total residual of each element and its momentum, from the layout of the files alone: the mean
// of the worker residuals, and the owners' chunks in the order of their buckets. The owners'
// residuals count `owed_updates` times.
struct KeptResiduals {
  Flat owed, momentum;
};

KeptResiduals kept_by(const std::vector<MemoryState>& states, int64_t elements,
                      int64_t bucket_bytes, int64_t owed_updates = 1) {
  const auto ranks = static_cast<int>(states.size());
  KeptResiduals kept{Flat(static_cast<size_t>(elements)), Flat(static_cast<size_t>(elements))};
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
      const Range chunk = comm::chunk_of(buckets.range(bucket), ranks, rank);
      for (int64_t i = chunk.begin; i < chunk.end; ++i, ++next) {
        kept.owed[static_cast<size_t>(i)] += static_cast<double>(owed_updates) * server.at(next);
        kept.momentum[static_cast<size_t>(i)] = double{momentum.at(next)};
      }
    }
    EXPECT_EQ(next, server.size());
  }
  return kept;
}

TEST(ResidualPlacement, IsKeptOnAnotherNumberOfRanks) {
  constexpr int64_t kFreeze = 8;
  const TrialOptions options{.optimizer = onebit_adam_recipe({.freeze = {.step = kFreeze}})};
  const auto saved = on_ranks(3, options, [](Trial& trial) {
    trial.steps(kFreeze + 4);
    return std::pair(trial.save(), trial.values());
  });
  const std::vector<MemoryState> states{saved[0].first, saved[1].first, saved[2].first};
  const auto elements = static_cast<int64_t>(saved[0].second.size());
  const KeptResiduals before = kept_by(states, elements, options.run.bucket_bytes);
  for (const int world_size : {1, 2, 5}) {
    const auto loaded = on_ranks(world_size, options, [&](Trial& trial) {
      trial.load(states, saved[0].second, kFreeze + 5);
      return trial.save();
    });
    const KeptResiduals now = kept_by(loaded, elements, options.run.bucket_bytes);
    double largest = 0;
    for (size_t i = 0; i < before.owed.size(); ++i) {
      // A single rank adds the residuals to its momentum, like a gradient.
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

// Between two synchronizations of 0/1 Adam, the owners' residuals count once for each of the
// updates that the last synchronization sent. Then follow the two updates since, of beta1 0.9, each
// with half of the sum of both.
TEST(ResidualPlacement, OneRankPaysWhatOwnersOfZeroOneAdamOwe) {
  constexpr int kLast = 24, kAt = kLast + 2;
  const ZeroOneOptions schedule{
      .variance_freeze = 12, .variance_scaler = 4, .local_scaler = 6, .local_limit = 4};
  const TrialOptions options{.optimizer = zero_one_adam_recipe({.schedule = schedule})};
  const auto saved = on_ranks(3, options, [](Trial& trial) {
    trial.steps(kAt);
    return std::pair(trial.save(), trial.common_values());
  });
  const std::vector<MemoryState> states{saved[0].first, saved[1].first, saved[2].first};
  const auto owed_updates = states[0].scalars.at("zero_one").at("last_exchanged").get<int64_t>();
  EXPECT_EQ(owed_updates, 2);
  const auto elements = static_cast<int64_t>(saved[0].second.size());
  const KeptResiduals before = kept_by(states, elements, options.run.bucket_bytes, owed_updates);
  const KeptResiduals once = kept_by(states, elements, options.run.bucket_bytes);
  const auto alone = on_ranks(1, options, [&](Trial& trial) {
    trial.load(states, saved[0].second, kAt + 1);
    return trial.save();
  });
  const std::vector<float>& momentum = alone[0].replicated_buffers.at("momentum");
  double twice = 0;
  for (size_t i = 0; i < before.owed.size(); ++i) {
    double sum = 0;
    for (const MemoryState& state : states) sum += state.own_buffers.at("sum")[i] / 3.0;
    ASSERT_NEAR(
        momentum[i], 0.81 * (before.momentum[i] + 0.1 * before.owed[i]) + (1 - 0.81) / 2 * sum,
        1e-6 *
            (std::abs(before.momentum[i]) + 0.1 * std::abs(before.owed[i]) + std::abs(sum) + 0.1))
        << i;
    twice = std::max(twice, std::abs(before.owed[i] - once.owed[i]));
  }
  EXPECT_GT(twice, 1e-2);
}

// Ranks share the reading: each reads its part of every saved buffer.
TEST(ResidualPlacement, RanksTogetherReadEveryBufferOnce) {
  constexpr int64_t kFreeze = 8;
  const TrialOptions options{.optimizer = onebit_adam_recipe({.freeze = {.step = kFreeze}})};
  for (const int saved_ranks : {2, 4, 8}) {
    const auto saved = on_ranks(saved_ranks, options, [](Trial& trial) {
      trial.steps(kFreeze + 2);
      return std::pair(trial.save(), trial.values());
    });
    std::vector<MemoryState> states;
    for (const auto& [state, values] : saved) states.push_back(state);
    const auto elements = static_cast<int64_t>(saved[0].second.size());
    for (const int ranks : {1, 2, 4, 8}) {
      if (ranks == saved_ranks) continue;
      const auto read = on_ranks(ranks, options, [&](Trial& trial) {
        trial.load(states, saved[0].second, kFreeze + 3);
        return trial.own_elements_read();
      });
      const comm::Buckets buckets(elements, options.run.bucket_bytes);
      int64_t together = 0;
      for (int rank = 0; rank < ranks; ++rank) {
        // A part of the variance and worker residual of every saved rank, and its owned elements.
        const int64_t parts = 2 * saved_ranks * (elements / ranks + 1);
        const int64_t one = read[static_cast<size_t>(rank)];
        EXPECT_LE(one, parts + 2 * buckets.owned_elements(ranks, rank))
            << saved_ranks << " to " << ranks;
        together += one;
      }
      EXPECT_EQ(together, 2 * saved_ranks * elements + 2 * elements);
    }
  }
}

TEST(SavedBytes, AreWhatTheRanksSaveInEitherPhase) {
  const TrialOptions options{.optimizer = onebit_adam_recipe({.freeze = {.step = 8}})};
  for (const int ranks : {1, 2, 3}) {
    const auto saved = on_ranks(ranks, options, [](Trial& trial) {
      trial.steps(3);
      const int64_t planned = trial.optimizer().saved_bytes(Phase::kCompressed);
      EXPECT_EQ(trial.optimizer().saved_bytes(Phase::kWarmup), 8 * trial.table().size_elements());
      trial.steps(9);
      return std::pair(trial.save(), planned);
    });
    int64_t bytes = 0;
    for (const auto& [name, buffer] : saved[0].first.replicated_buffers) {
      bytes += static_cast<int64_t>(buffer.size() * sizeof(float));
    }
    for (const auto& [state, planned] : saved) {
      for (const auto& [name, buffer] : state.own_buffers) {
        bytes += static_cast<int64_t>(buffer.size() * sizeof(float));
      }
    }
    EXPECT_EQ(saved[0].second, bytes) << ranks;
  }
}

// The same ranks with other buckets: a run continues bit for bit.
TEST(ResidualPlacement, DoesNotDependOnTheBucketsOfTheCheckpoint) {
  TrialOptions options{.optimizer = onebit_adam_recipe({.freeze = {.step = 8}})};
  options.run.bucket_bytes = 8192;
  struct End {
    MemoryState saved;
    std::vector<float> values, end_values;
  };
  const auto unbroken = on_ranks(3, options, [](Trial& trial) {
    trial.steps(12);
    End end{.saved = trial.save(), .values = trial.values(), .end_values = {}};
    trial.steps(12);
    end.end_values = trial.values();
    return end;
  });
  std::vector<MemoryState> states;
  for (const End& end : unbroken) states.push_back(end.saved);
  EXPECT_EQ(states[0].scalars.at("bucket_bytes"), 8192);
  // Old checkpoints hold the recipe's bucket size, which need not be a multiple of blocks.
  for (MemoryState& state : states) state.scalars["bucket_bytes"] = 10485;
  for (const int64_t bucket_bytes : {8192, 24576, 1 << 20}) {
    options.run.bucket_bytes = bucket_bytes;
    const auto resumed = on_ranks(3, options, [&](Trial& trial) {
      trial.load(states, unbroken[0].values, 13);
      trial.steps(12);
      return trial.values();
    });
    for (const auto& values : resumed) EXPECT_EQ(values, unbroken[0].end_values) << bucket_bytes;
  }
}

// The layout depends on the size of messages, and so on the number of ranks.
TEST(ResidualPlacement, AChangedCutKeepsWhatIsOwedOnAnyNumberOfRanks) {
  constexpr int64_t kElements = 80 * comm::kBlockElements + 1000, kMinBytes = 8192;
  const auto number_of = [](int64_t place, int rank, int kind) {
    return static_cast<float>(place % 997 + 1000 * rank + 10000 * kind);
  };
  // Runs `work` with the momentum of every rank, and returns the saved states.
  const auto saved_by = [&](int ranks, const std::function<void(OwnedMomentum&)>& work) {
    std::vector<MemoryState> states(static_cast<size_t>(ranks));
    comm::run_thread_world(ranks, [&](comm::Communicator& communicator) {
      ParameterTable table;
      table.add({.name = "weight", .shape = {kElements}});
      table.allocate(Device{}, DType::kF32);
      const comm::Buckets buckets =
          compress::sized_buckets(table.size_elements(), ranks, kMinBytes);
      const Topology topology(communicator, {.buckets = buckets, .world_size = ranks}, Device{});
      OwnedMomentum momentum(topology, ConstView());
      momentum.hold(Tensor::zeros(Device{}, DType::kF32, {table.size_elements()}));
      work(momentum);
      momentum.save(states[static_cast<size_t>(communicator.rank())]);
    });
    return states;
  };
  std::vector<MemoryState> states = saved_by(4, [](OwnedMomentum&) {});
  const int64_t bucket_bytes = states[0].scalars.at("bucket_bytes").get<int64_t>();
  EXPECT_EQ(bucket_bytes, 10 * kMinBytes);  // eight buckets of ten blocks, and one block
  for (int rank = 0; rank < 4; ++rank) {
    for (auto& [name, buffer] : states[static_cast<size_t>(rank)].own_buffers) {
      const int kind = name == "worker_residual" ? 0 : name == "server_residual" ? 1 : 2;
      for (size_t i = 0; i < buffer.size(); ++i)
        buffer[i] = number_of(static_cast<int64_t>(i), rank, kind);
    }
  }
  const auto elements = static_cast<int64_t>(states[0].own_buffers.at("worker_residual").size());
  const KeptResiduals before = kept_by(states, elements, bucket_bytes);
  for (const int ranks : {2, 4, 7, 64}) {
    const auto loaded =
        saved_by(ranks, [&](OwnedMomentum& momentum) { momentum.load(MemoryReader(states), 0.9); });
    const KeptResiduals now =
        kept_by(loaded, elements, loaded[0].scalars.at("bucket_bytes").get<int64_t>());
    EXPECT_EQ(now.momentum, before.momentum) << ranks;
    for (size_t i = 0; i < before.owed.size(); ++i) {
      ASSERT_NEAR(now.owed[i], before.owed[i], 0x1p-22 * before.owed[i]) << i << ", " << ranks;
    }
  }
}

}  // namespace
}  // namespace onebit::optim
