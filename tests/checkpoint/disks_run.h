// Runs of the toy model whose ranks do not share a disk, saved and resumed.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "onebit/data/formats/safetensors.h"
#include "onebit/exchange/checkpoint/checkpoint.h"
#include "onebit/exchange/comm/thread_communicator.h"
#include "onebit/ground/base/folder.h"
#include "tests/base/message_of.h"
#include "tests/base/temporary_folder.h"
#include "tests/engine/toy_model.h"

namespace onebit::checkpoint {

using Layout = std::vector<int>;  // the disk of each rank

inline constexpr const char* kAdam = R"({"type": "AdamW", "params": {"lr": 1e-2}})";
inline constexpr const char* kOneBit =
    R"({"type": "OneBitAdam", "params": {"lr": 1e-2, "freeze_step": 4}})";
inline constexpr int kFirst = 6, kSecond = 9, kSteps = 12;  // checkpoints, end

struct Trial {
  const char* optimizer = kOneBit;
  Layout layout = {0, 1};
  int64_t copies = 1;
  std::string tag = {};  // to resume from
  int64_t keep_last = 2;
};

struct Resumed {
  std::string tag;
  std::vector<std::string> report;
  std::vector<double> losses;
};

class DisksTest : public testing::Test {
 protected:
  Path disk(int number) const { return root_ / std::to_string(number); }
  Path shard(int number, int step, int rank, int world) const {
    return disk(number) / tag_of_step(step) / shard_name(rank, world);
  }

  static void save(engine::ToyRun& run, Checkpoints& checkpoints) {
    checkpoints.save(run.engine(), {{"samples", run.samples()}},
                     [values = run.values()](const Path& folder) {
                       write_file_atomically(folder / "config.json", "{}");
                       make_folder(folder / "1_Pooling");  // part of sentence models
                       write_file_atomically(folder / "1_Pooling/config.json", "{}");
                       formats::write_safetensors(
                           folder / "model.safetensors",
                           {{"values", values.data(), {static_cast<int64_t>(values.size())}}});
                     });
    checkpoints.wait();
  }

  // Runs `work` on ranks with these disks.
  void on_ranks(const Trial& trial,
                const std::function<void(engine::ToyRun&, Checkpoints&, bool first)>& work) const {
    const auto world = static_cast<int>(trial.layout.size());
    comm::run_thread_world(world, [&](comm::Communicator& communicator) {
      comm::run_rank(communicator, [&] {
        const int own = trial.layout[static_cast<size_t>(communicator.rank())];
        engine::ToyRun run(engine::toy_config(trial.optimizer, 12, 1), communicator);
        Checkpoints checkpoints(communicator, disk(own), trial.keep_last, trial.copies);
        work(run, checkpoints, communicator.rank() == 0);
      });
    });
  }

  // Trains to kSteps, with checkpoints at kFirst and kSecond. Returns the losses after kFirst.
  std::vector<double> train(const Trial& trial) const {
    std::vector<double> losses;
    on_ranks(trial, [&](engine::ToyRun& run, Checkpoints& checkpoints, bool first) {
      for (int step = 1; step <= kSteps; ++step) {
        const double loss = run.step();
        if (first && step > kFirst) losses.push_back(loss);
        if (step == kFirst || step == kSecond) save(run, checkpoints);
      }
    });
    return losses;
  }

  // Resumes and trains to kSteps without a checkpoint.
  Resumed resume(const Trial& trial) const {
    Resumed resumed;
    on_ranks(trial, [&](engine::ToyRun& run, Checkpoints& checkpoints, bool first) {
      const SavedCheckpoint saved = checkpoints.open(trial.tag).value();
      const formats::SafetensorsFile file(saved.model_folder / "model.safetensors");
      file.read_f32(0, {run.table().values().data<float>(),
                        static_cast<size_t>(run.table().size_elements())});
      saved.shards.serve_while([&] { run.engine().load(saved.shards); });
      run.continue_from(saved.client_state.at("samples").get<int64_t>());
      EXPECT_EQ(run.engine().completed_steps(), saved.step);
      std::vector<double> losses;
      for (int64_t step = saved.step; step < kSteps; ++step) losses.push_back(run.step());
      EXPECT_TRUE(run.engine().replicas_agree());
      if (first) resumed = {.tag = saved.tag, .report = saved.report, .losses = losses};
    });
    return resumed;
  }

  // Resuming as `trial` continues from the step exactly like the uninterrupted run.
  void expect_continues(const Trial& trial, int step, const std::vector<double>& unbroken) const {
    const Resumed resumed = resume(trial);
    EXPECT_EQ(resumed.tag, tag_of_step(step)) << fmt::format("{}", fmt::join(resumed.report, "\n"));
    const std::vector<double> expected(unbroken.begin() + (step - kFirst), unbroken.end());
    EXPECT_EQ(resumed.losses, expected);
  }

  std::string error_of_resuming(const Trial& trial) const {
    return message_of([&] { resume(trial); });
  }

  TemporaryFolder root_;
};

}  // namespace onebit::checkpoint
