#include "onebit/exchange/checkpoint/checkpoint.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cmath>

#include "onebit/data/formats/safetensors.h"
#include "onebit/exchange/comm/thread_communicator.h"
#include "tests/base/damage.h"
#include "tests/base/message_of.h"
#include "tests/engine/toy_model.h"

namespace onebit::checkpoint {
namespace {

constexpr const char* kAdam = R"({"type": "AdamW", "params": {"lr": 1e-2}})";
constexpr const char* kLamb = R"({"type": "Lamb", "params": {"lr": 1e-2, "weight_decay": 0.01}})";
constexpr const char* kOneBit =
    R"({"type": "OneBitAdam", "params": {"lr": 1e-2, "freeze_step": 8}})";

class CheckpointTest : public testing::Test {
 protected:
  CheckpointTest()
      : root_(std::filesystem::temp_directory_path() /
              ("onebit_checkpoint_" + std::to_string(::getpid()))) {}
  ~CheckpointTest() override { std::filesystem::remove_all(root_); }

  static void save(engine::ToyRun& run, Checkpoints& checkpoints) {
    checkpoints.save(run.engine(), {{"samples", run.samples()}},
                     [values = run.values()](const Path& folder) {
                       formats::write_safetensors(
                           folder / "model.safetensors",
                           {{"values", values.data(), {static_cast<int64_t>(values.size())}}});
                     });
    checkpoints.wait();
  }

  static void restore(engine::ToyRun& run, const SavedCheckpoint& saved) {
    const formats::SafetensorsFile file(saved.model_folder / "model.safetensors");
    file.read_f32(
        0, {run.table().values().data<float>(), static_cast<size_t>(run.table().size_elements())});
    run.engine().load(saved.shards);
    run.continue_from(saved.client_state.at("samples").get<int64_t>());
  }

  // Losses of `steps` steps, interrupted and restored after `interrupt` of them.
  std::vector<double> losses(const engine::EngineConfig& config, int world, int steps,
                             int interrupt) {
    std::vector<double> all;
    const auto train = [&](int from, int to, bool resume) {
      comm::run_thread_world(world, [&](comm::Communicator& communicator) {
        engine::ToyRun run(config, communicator);
        Checkpoints checkpoints(communicator, root_, 2);
        if (resume) restore(run, checkpoints.open().value());
        for (int step = from; step < to; ++step) {
          const double loss = run.step();
          if (communicator.rank() == 0) all.push_back(loss);
        }
        if (to < steps) save(run, checkpoints);
      });
    };
    train(0, interrupt, false);
    if (interrupt < steps) train(interrupt, steps, true);
    return all;
  }

  Path root_;
};

// The last interruption is after the first measurement of the noise, nine updates after the freeze.
TEST_F(CheckpointTest, ResumesBitForBit) {
  constexpr int kSteps = 23;
  for (const char* optimizer : {kAdam, kLamb, kOneBit}) {
    const engine::EngineConfig config = engine::toy_config(optimizer, 12, 2);
    for (const int world : {1, 2, 3}) {
      const auto unbroken = losses(config, world, kSteps, kSteps);
      for (const int interrupt : {1, 7, 8, 12, 19}) {
        EXPECT_EQ(losses(config, world, kSteps, interrupt), unbroken)
            << optimizer << " on " << world << " ranks, interrupted after " << interrupt;
      }
    }
  }
}

constexpr const char* kClip = R"(, "gradient_clipping": 0.5)";

// The buckets' shares are known only after update 10. The run is interrupted before and after it.
TEST_F(CheckpointTest, ResumesClippingByBucketBitForBit) {
  constexpr int kSteps = 23;
  const engine::EngineConfig config = engine::toy_config(kOneBit, 12, 2, kClip);
  for (const int world : {2, 3}) {
    const auto unbroken = losses(config, world, kSteps, kSteps);
    for (const int interrupt : {3, 8, 9, 14, 19}) {
      EXPECT_EQ(losses(config, world, kSteps, interrupt), unbroken)
          << world << " ranks, interrupted after " << interrupt;
    }
  }
}

// Interrupted before "auto" has decided, in the updates that it observes, at the last update of the
// warm-up, and after it.
TEST_F(CheckpointTest, ResumesAnAutomaticFreezeBitForBit) {
  constexpr int kSteps = 66;
  engine::EngineConfig config = engine::toy_config(
      R"({"type": "OneBitAdam", "params": {"lr": 1e-3, "betas": [0.9, 0.99], "freeze_step": "auto",
                                           "freeze_window": 4}})",
      12, 2, kClip);
  config.run.steps = kSteps;
  int frozen = 1;
  for (const engine::StepOutcome& outcome : engine::train_toy(config, 2, kSteps).outcomes) {
    if (outcome.froze_now) break;
    ++frozen;
  }
  ASSERT_GT(frozen, 52);
  ASSERT_LT(frozen, kSteps - 3);
  const auto unbroken = losses(config, 2, kSteps, kSteps);
  for (const int interrupt : {3, 30, frozen - 1, frozen, frozen + 3}) {
    EXPECT_EQ(losses(config, 2, kSteps, interrupt), unbroken) << "after " << interrupt;
  }
}

// The first step that announced its gradient, of those after a checkpoint of 14 updates, or 0.
TEST_F(CheckpointTest, BucketsAreKnownAgainAfterALoad) {
  const auto save_on = [&](int world, const char* more_run) {
    comm::run_thread_world(world, [&](comm::Communicator& communicator) {
      engine::ToyRun run(engine::toy_config(kOneBit, 12, 2, kClip, more_run), communicator);
      Checkpoints checkpoints(communicator, root_, 2);
      for (int step = 0; step < 14; ++step) run.step();
      save(run, checkpoints);
    });
  };
  const auto first_early = [&](int world, const char* more_run) {
    int first = 0;
    comm::run_thread_world(world, [&](comm::Communicator& communicator) {
      engine::ToyRun run(engine::toy_config(kOneBit, 12, 2, kClip, more_run), communicator);
      Checkpoints checkpoints(communicator, root_, 2);
      restore(run, *checkpoints.open());
      for (int step = 15; step <= 26; ++step) {
        run.step();
        if (communicator.rank() == 0 && first == 0 && run.announces()) first = step;
      }
      EXPECT_TRUE(run.engine().replicas_agree());
    });
    return first;
  };
  constexpr const char* kExactly = R"(, "clip": "exact")";
  save_on(3, "");
  EXPECT_EQ(first_early(3, ""), 15);
  EXPECT_EQ(first_early(2, ""), 15);
  EXPECT_EQ(first_early(3, kExactly), 0);
  // Buckets of other sizes, and buckets whose shares were not measured.
  EXPECT_EQ(first_early(3, R"(, "bucket_mb": 0.02)"), 25);
  save_on(3, kExactly);
  EXPECT_EQ(first_early(3, ""), 25);
  save_on(1, "");
  EXPECT_EQ(first_early(2, ""), 25);
}

double distance(const std::vector<float>& left, const std::vector<float>& right) {
  double square = 0;
  for (size_t i = 0; i < left.size(); ++i) square += std::pow(double{left[i]} - right[i], 2);
  return std::sqrt(square);
}

// A dense optimizer has no state per rank: apart from the order of sums it is the same run.
TEST_F(CheckpointTest, DenseOptimizersGoOnOnAnotherNumberOfRanks) {
  for (const char* optimizer : {kAdam, kLamb}) {
    for (const auto& [from, to] : {std::pair(3, 2), {2, 3}, {1, 3}, {3, 1}}) {
      std::filesystem::remove_all(root_);
      std::vector<float> unbroken, resumed;
      comm::run_thread_world(from, [&](comm::Communicator& communicator) {
        engine::ToyRun run(engine::toy_config(optimizer, 12, 2), communicator);
        Checkpoints checkpoints(communicator, root_, 2);
        for (int step = 0; step < 8; ++step) run.step();
        save(run, checkpoints);
        for (int step = 0; step < 8; ++step) run.step();
        if (communicator.rank() == 0) unbroken = run.values();
      });
      comm::run_thread_world(to, [&](comm::Communicator& communicator) {
        engine::ToyRun run(engine::toy_config(optimizer, 12, 2), communicator);
        Checkpoints checkpoints(communicator, root_, 2);
        restore(run, checkpoints.open().value());
        for (int step = 0; step < 8; ++step) run.step();
        EXPECT_TRUE(run.engine().replicas_agree());
        if (communicator.rank() == 0) resumed = run.values();
      });
      for (size_t i = 0; i < unbroken.size(); ++i) {
        ASSERT_NEAR(resumed[i], unbroken[i], 1e-4) << optimizer << from << " to " << to;
      }
    }
  }
}

// From the files: bit for bit with the same number of ranks, otherwise near the uninterrupted run.
TEST_F(CheckpointTest, ResumesFromAnyNumberOfRanksOnAnyOther) {
  // The noise of the signs is as large after few steps as after many, unlike the distance moved.
  constexpr int kSteps = 16;
  const auto config = [] { return engine::toy_config(kOneBit, 24, 1); };
  for (const auto& [from, to] :
       {std::pair(4, 4), {4, 2}, {2, 4}, {1, 4}, {4, 1}, {8, 1}, {1, 8}, {8, 3}, {3, 8}, {6, 8}}) {
    std::filesystem::remove_all(root_);
    std::vector<float> saved_values, unbroken, resumed;
    comm::run_thread_world(from, [&](comm::Communicator& communicator) {
      engine::ToyRun run(config(), communicator);
      Checkpoints checkpoints(communicator, root_, 2);
      for (int step = 0; step < 12; ++step) run.step();
      save(run, checkpoints);
      if (communicator.rank() == 0) saved_values = run.values();
      for (int step = 0; step < kSteps; ++step) run.step();
      if (communicator.rank() == 0) unbroken = run.values();
    });
    comm::run_thread_world(to, [&](comm::Communicator& communicator) {
      engine::ToyRun run(config(), communicator);
      Checkpoints checkpoints(communicator, root_, 2);
      restore(run, checkpoints.open().value());
      EXPECT_EQ(run.engine().optimizer().phase(), optim::Phase::kCompressed);
      for (int step = 0; step < kSteps; ++step) run.step();
      EXPECT_TRUE(run.engine().replicas_agree());
      if (communicator.rank() == 0) resumed = run.values();
    });
    if (from == to) {
      EXPECT_EQ(resumed, unbroken);
    } else {
      EXPECT_LT(distance(resumed, unbroken), 0.5 * distance(saved_values, unbroken))
          << from << " to " << to;
    }
  }
}

// The source of a resumed run: a checkpoint, or only its values.
enum class Kept { kAll, kValues };

TEST_F(CheckpointTest, WhatTheOptimizerKnewCountsOnAnotherNumberOfRanks) {
  constexpr int kSteps = 4;
  std::vector<float> unbroken;
  const auto keep = [](comm::Communicator& communicator, engine::ToyRun& run,
                       std::vector<float>& values) {
    for (int step = 0; step < kSteps; ++step) run.step();
    if (communicator.rank() == 0) values = run.values();
  };
  comm::run_thread_world(3, [&](comm::Communicator& communicator) {
    engine::ToyRun run(engine::toy_config(kOneBit, 12, 2), communicator);
    Checkpoints checkpoints(communicator, root_, 2);
    for (int step = 0; step < 12; ++step) run.step();
    save(run, checkpoints);
    keep(communicator, run, unbroken);
  });
  const auto resumed_on = [&](int world, Kept kept) {
    std::vector<float> values;
    comm::run_thread_world(world, [&](comm::Communicator& communicator) {
      engine::ToyRun run(engine::toy_config(kOneBit, 12, 2), communicator);
      Checkpoints checkpoints(communicator, root_, 2);
      const auto saved = checkpoints.open();
      restore(run, *saved);
      if (kept == Kept::kAll) return keep(communicator, run, values);
      engine::ToyRun fresh(engine::toy_config(kOneBit, 12, 2), communicator);
      copy(fresh.table().values(), run.table().values());
      fresh.continue_from(run.samples());
      keep(communicator, fresh, values);
    });
    return values;
  };
  for (const int world : {1, 2}) {
    const double with_state = distance(resumed_on(world, Kept::kAll), unbroken);
    const double without = distance(resumed_on(world, Kept::kValues), unbroken);
    EXPECT_LT(with_state, 0.5 * without) << "on " << world << " ranks";
  }
}

TEST_F(CheckpointTest, FailedWriteIsOneErrorOnEveryRankAndLeavesNothing) {
  std::atomic<int> failures = 0;
  comm::run_thread_world(2, [&](comm::Communicator& communicator) {
    engine::ToyRun run(engine::toy_config(kAdam, 12, 2), communicator);
    Checkpoints checkpoints(communicator, root_, 2);
    run.step();
    checkpoints.save(run.engine(), {}, [](const Path&) { fail("no space left"); });
    try {
      checkpoints.wait();
    } catch (const Error& error) {
      EXPECT_NE(std::string(error.what()).find("rank 0: no space left"), std::string::npos);
      ++failures;
    }
  });
  EXPECT_EQ(failures, 2);
  EXPECT_TRUE(std::filesystem::is_empty(root_));
}

// A rank's files after `steps` steps, one checkpoint.
void save_once(const Path& root, int steps) {
  comm::run_thread_world(2, [&](comm::Communicator& communicator) {
    engine::ToyRun run(engine::toy_config(kOneBit, 12, 2), communicator);
    Checkpoints checkpoints(communicator, root, 2);
    for (int step = 0; step < steps; ++step) run.step();
    checkpoints.save(run.engine(), {}, [](const Path&) {});
    checkpoints.wait();
  });
}

std::string error_of_opening(const Path& root) {
  const auto one = comm::make_single_rank();
  return message_of([&] { Checkpoints(*one, root, 2).open(); });
}

TEST_F(CheckpointTest, WhatAKilledWriteLeftIsNotSeenAndNotInTheWay) {
  save_once(root_, 3);
  std::filesystem::create_directories(root_ / "global_step6.partial" / "model");
  write_file_atomically(root_ / "global_step6.partial" / "state.json", "{\"form");
  const auto one = comm::make_single_rank();
  EXPECT_EQ(Checkpoints(*one, root_, 2).open()->tag, "global_step3");
  save_once(root_, 6);
  EXPECT_EQ(Checkpoints(*one, root_, 2).open()->tag, "global_step6");
  EXPECT_FALSE(std::filesystem::exists(root_ / "global_step6.partial"));
}

TEST_F(CheckpointTest, WithoutLatestTheNewestIsMeant) {
  save_once(root_, 3);
  save_once(root_, 6);
  std::filesystem::remove(root_ / "latest");
  const auto one = comm::make_single_rank();
  EXPECT_EQ(Checkpoints(*one, root_, 2).open()->tag, "global_step6");
}

TEST_F(CheckpointTest, OpensTheRequestedTag) {
  const auto one = comm::make_single_rank();
  const auto error_of = [&](const std::string& tag) {
    return message_of([&] { Checkpoints(*one, root_, 2).open(tag); });
  };
  EXPECT_NE(error_of("global_step3").find("it contains no checkpoint at all"), std::string::npos);
  save_once(root_, 3);
  save_once(root_, 6);
  EXPECT_EQ(Checkpoints(*one, root_, 2).open("global_step3")->step, 3);
  EXPECT_EQ(Checkpoints(*one, root_, 2).open()->step, 6);
  std::filesystem::create_directories(root_ / "global_step9.partial");
  write_file_atomically(root_ / "global_step9.partial" / "state.json", "{}");
  for (const char* tag : {"global_step4", "global_step9.partial", "../run", ".", "latest"}) {
    const std::string message = error_of(tag);
    EXPECT_NE(message.find(std::string("contains no checkpoint \"") + tag +
                           "\"; it contains global_step6, global_step3"),
              std::string::npos)
        << message;
  }
}

TEST_F(CheckpointTest, DamageIsNamed) {
  save_once(root_, 10);
  const Path folder = root_ / "global_step10";
  const Path shard = folder / "optimizer-00001-of-00002.safetensors";
  const std::string state = read_file(folder / "state.json");
  const size_t digit = state.find("\"completed_steps\": 10") + 20;
  for (const size_t at : {digit, state.find("client_state") + 2}) {
    std::string changed = state;
    changed[at] = changed[at] == '0' ? '1' : '0';
    write_file_atomically(folder / "state.json", changed);
    EXPECT_NE(error_of_opening(root_).find("state.json: damaged"), std::string::npos) << at;
  }
  write_file_atomically(folder / "state.json", state);
  EXPECT_EQ(error_of_opening(root_), "(no error)");
  change_last_byte(shard);
  EXPECT_NE(error_of_opening(root_).find("optimizer-00001-of-00002.safetensors: damaged"),
            std::string::npos);
  std::filesystem::resize_file(shard, std::filesystem::file_size(shard) / 2);
  EXPECT_NE(error_of_opening(root_).find("optimizer-00001-of-00002.safetensors"),
            std::string::npos);
  std::filesystem::remove(shard);
  EXPECT_NE(error_of_opening(root_).find("optimizer-00001-of-00002.safetensors"),
            std::string::npos);
  write_file_atomically(folder / "state.json", "{");
  EXPECT_NE(error_of_opening(root_).find("state.json:1:"), std::string::npos);
  std::filesystem::remove_all(folder);
  write_file_atomically(root_ / "latest", "global_step11");
  const std::string absent = error_of_opening(root_);
  EXPECT_NE(absent.find("latest: names the checkpoint \"global_step11\", which does not exist"),
            std::string::npos)
      << absent;
}

}  // namespace
}  // namespace onebit::checkpoint
