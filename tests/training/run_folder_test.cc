// Compares the predicted space of a run's checkpoints with those that it writes.
#include "onebit/training/training/run_folder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "onebit/exchange/checkpoint/checkpoint.h"
#include "onebit/exchange/comm/thread_communicator.h"
#include "onebit/ground/base/json.h"
#include "tests/base/message_of.h"
#include "tests/base/temporary_folder.h"

namespace onebit::training {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

struct Config {
  engine::EngineConfig engine;
  SessionConfig session;
};

Config config_of(const std::string& optimizer, const std::string& run) {
  const Json recipe = parse_json(
      fmt::format(R"({{"train_micro_batch_size_per_gpu": 1, "gradient_accumulation_steps": 1,
                       "optimizer": {}, "run": {}}})",
                  optimizer, run),
      "recipe");
  Keys keys(recipe, "recipe");
  Config config{engine::parse_engine_config(keys), read_session_config(keys)};
  keys.check();
  return config;
}

constexpr const char* kOneBit = R"({"type": "OneBitAdam", "params": {"freeze_step": 2}})";

// Calls `look` on rank 0 with an engine over 200000 parameters, before and after some steps.
void with_engine(int ranks, const Config& config, int steps,
                 const std::function<void(engine::Engine&)>& look,
                 const std::function<void(engine::Engine&, comm::Communicator&)>& after = {}) {
  comm::run_thread_world(ranks, [&](comm::Communicator& communicator) {
    Context context = Context::cpu(1);
    ParameterTable table;
    table.add({.name = "weight", .shape = {400, 500}});
    table.allocate(Device{}, DType::kF32);
    engine::Engine engine(context, table, config.engine, communicator);
    if (communicator.rank() == 0) look(engine);
    for (int step = 0; step < steps; ++step) {
      engine.backward([&](const engine::BackwardInput& input) {
        if (input.gradients_ready) input.gradients_ready({0, table.size_elements()});
      });
      engine.step();
    }
    if (after) after(engine, communicator);
  });
}

int64_t shard_bytes(const Path& folder) {
  int64_t bytes = 0;
  for (const auto& file : std::filesystem::directory_iterator(folder)) {
    if (file.path().extension() == ".safetensors") {
      bytes += static_cast<int64_t>(file.file_size());
    }
  }
  return bytes;
}

TEST(CheckpointSpace, IsWhatIsWrittenInEitherPhase) {
  for (const int ranks : {1, 3}) {
    for (const int steps : {1, 4}) {
      const TemporaryFolder folder;
      CheckpointSpace space;
      with_engine(
          ranks, config_of(kOneBit, R"({"steps": 4})"), steps,
          [&](engine::Engine& engine) { space = space_of_checkpoints(engine, {}); },
          [&](engine::Engine& engine, comm::Communicator& communicator) {
            checkpoint::Checkpoints checkpoints(communicator, folder / "run", 1);
            checkpoints.save(engine, {}, [](const Path&) {});
            checkpoints.wait();
          });
      const int64_t planned = (steps == 1 ? space.first_bytes : space.compressed_bytes) - 800000;
      const auto tag = "global_step" + std::to_string(steps);
      const auto written = static_cast<double>(shard_bytes(folder / "run" / tag));
      EXPECT_NEAR(static_cast<double>(planned), written, 0.01 * written) << ranks << ", " << steps;
    }
  }
}

// With copies a disk has shards of others besides its own.
TEST(CheckpointSpace, IsThatOfADisksShareOnSeveral) {
  const TemporaryFolder folder;
  std::vector<CheckpointSpace> spaces(3);
  constexpr int64_t kCopies = 2;
  with_engine(
      3, config_of(kOneBit, R"({"steps": 4})"), 4, [](engine::Engine&) {},
      [&](engine::Engine& engine, comm::Communicator& communicator) {
        const auto rank = static_cast<size_t>(communicator.rank());
        const Path own = folder / (rank == 0 ? "0" : "1");
        checkpoint::Checkpoints checkpoints(communicator, own, 1, kCopies);
        const checkpoint::Disks& disks = checkpoints.disks();
        const int shards = disks.shards_on(disks.disk_of(communicator.rank()), kCopies);
        EXPECT_EQ(shards, 3);
        spaces[rank] = space_of_checkpoints(engine, {}, shards / 3.0);
        checkpoints.save(engine, {}, [](const Path&) {});
        checkpoints.wait();
      });
  for (const int disk : {0, 1}) {
    const auto written =
        static_cast<double>(shard_bytes(folder / std::to_string(disk) / "global_step4"));
    const auto planned = static_cast<double>(spaces[disk == 0 ? 0 : 2].first_bytes - 800000);
    EXPECT_NEAR(planned, written, 0.01 * written) << disk;
  }
  with_engine(2, config_of(kOneBit, R"({"steps": 4})"), 0, [](engine::Engine& engine) {
    const int64_t whole = space_of_checkpoints(engine, {}).first_bytes;
    EXPECT_EQ(space_of_checkpoints(engine, {}, 0.5).first_bytes - 800000, (whole - 800000) / 2);
  });
}

// The plan of memory has what saving copies, in the phase that copies most.
TEST(CheckpointSpace, CopiesAreThoseOfAShardAndTheValues) {
  constexpr int64_t kValues = 4 * 200000;
  for (const int ranks : {1, 3}) {
    int64_t planned = 0;
    with_engine(
        ranks, config_of(kOneBit, R"({"steps": 4})"), 4,
        [&](engine::Engine& engine) { planned = checkpoint_copy_bytes(engine, ranks, false); },
        [&](engine::Engine& engine, comm::Communicator& communicator) {
          EXPECT_NEAR(checkpoint_copy_bytes(engine, ranks, true),
                      checkpoint_copy_bytes(engine, ranks, false) + kValues, 100);
          checkpoint::StateShard shard(communicator.rank(), ranks);
          engine.save(shard);
          const auto copied = static_cast<double>(shard.size_bytes());
          EXPECT_NEAR(static_cast<double>(planned), copied, 0.01 * copied) << ranks;
        });
  }
}

CheckpointSpace space_of(const std::string& optimizer, const std::string& run) {
  CheckpointSpace space;
  const Config config = config_of(optimizer, run);
  with_engine(2, config, 0, [&](engine::Engine& engine) {
    space = space_of_checkpoints(engine, config.session);
  });
  return space;
}

TEST(CheckpointSpace, KnowsARunThatIsNeverCompressed) {
  EXPECT_EQ(space_of(R"({"type": "Adam"})", R"({"steps": 4})").compressed_bytes, 0);
  EXPECT_EQ(space_of(kOneBit, R"({"steps": 2})").compressed_bytes, 0);
  EXPECT_GT(space_of(kOneBit, R"({"steps": 3})").compressed_bytes, 0);
}

TEST(CheckpointSpace, CountsTheLastStepsOwn) {
  const auto to_come = [](const std::string& run) { return space_of(kOneBit, run).to_come; };
  EXPECT_EQ(to_come(R"({"steps": 9})"), 1);
  EXPECT_EQ(to_come(R"({"steps": 9, "checkpoint_every": 3})"), 3);
  EXPECT_EQ(to_come(R"({"steps": 10, "checkpoint_every": 3})"), 4);
}

constexpr int64_t kGb = 1'000'000'000;

TEST(CheckpointSpace, IsReported) {
  CheckpointSpace space{.first_bytes = 4 * kGb, .to_come = 20, .keep_last = 3};
  EXPECT_EQ(
      describe(space),
      "4.00 GB; 20 more will be written, the last 3 are kept: up to 16.0 GB more on the disk");
  space.compressed_bytes = 25 * kGb;
  space.to_come = 1;
  EXPECT_EQ(describe(space),
            "4.00 GB, 25.0 GB after the freeze; 1 more will be written, the last 3 are kept: up to "
            "25.0 GB more on the disk");
}

TEST(CheckpointSpace, OneCheckpointMustFitAndTheRestIsWarnedOf) {
  const CheckpointSpace space{
      .first_bytes = 4 * kGb, .compressed_bytes = 25 * kGb, .to_come = 20, .keep_last = 3};
  EXPECT_THAT(message_of([&] { check_space(space, 0, 24 * kGb, "runs/a"); }),
              HasSubstr("runs/a: 24.0 GB are free, one checkpoint of this run takes 25.0 GB"));
  EXPECT_THAT(check_space(space, 0, 99 * kGb, "runs/a"),
              HasSubstr("runs/a: 99.0 GB are free, but 100 GB are needed: this run will have 4 "
                        "checkpoints of 25.0 GB there at the same time"));
  EXPECT_EQ(check_space(space, 0, 100 * kGb, "runs/a"), "");
  // A resumed run has written some, which make room. Checkpoints of the warm-up are small.
  EXPECT_THAT(check_space(space, 3, 87 * kGb, "runs/a"), HasSubstr("but 88.0 GB are needed"));
  EXPECT_EQ(check_space(space, 3, 88 * kGb, "runs/a"), "");
  CheckpointSpace compressed = space;
  compressed.first_bytes = compressed.compressed_bytes;
  EXPECT_EQ(check_space(compressed, 3, 25 * kGb, "runs/a"), "");
  EXPECT_THAT(check_space(compressed, 2, 49 * kGb, "runs/a"), HasSubstr("but 50.0 GB are needed"));
  CheckpointSpace last = space;
  last.to_come = 1;
  EXPECT_EQ(check_space(last, 0, 25 * kGb, "runs/a"), "");
  // One that has ended writes nothing.
  last.to_come = 0;
  EXPECT_EQ(check_space(last, 0, 0, "runs/a"), "");
}

TEST(CheckpointSpace, IsKnownOfAFolder) {
  const TemporaryFolder folder;
  EXPECT_GT(free_bytes_at(folder / ".").value(), 0);
  EXPECT_FALSE(free_bytes_at(folder / "nowhere").has_value());
}

}  // namespace
}  // namespace onebit::training
