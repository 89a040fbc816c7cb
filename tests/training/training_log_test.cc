#include "onebit/training/training/training_log.h"

#include <gtest/gtest.h>

#include "onebit/ground/base/folder.h"
#include "onebit/ground/base/json.h"
#include "onebit/ground/metrics/log_line.h"
#include "onebit/ground/metrics/run_history.h"
#include "tests/base/temporary_folder.h"

namespace onebit::training {
namespace {

StepRecord record_of(int64_t step) {
  StepRecord record;
  record.outcome.step = step;
  record.outcome.loss_scale = 1024;
  record.samples = 8 * step;
  record.step_samples = 8;
  record.loss = 3;
  record.seconds = 0.5;
  record.data_seconds = 0.125;
  return record;
}

// Reads the log as `onebit report` does.
metrics::RunHistory read_back(const Path& folder) {
  return metrics::read_run(folder);
}

TEST(TrainingLog, IsWhatTheReportReads) {
  const TemporaryFolder folder;
  TrainingLog log(folder.path(), {.world_size = 2});
  log.table(metrics::log_line::Kind::kStart, 0, {{"model", "2 layers"}},
            {{"expected_seconds", {{"dense", 2.5}, {"compressed", 1.5}, {"run", 60}}}});
  StepRecord first = record_of(1), second = record_of(2);
  second.outcome.phase = optim::Phase::kCompressed;
  second.outcome.sent_norm = 2;
  second.outcome.residual_norm = 3;
  log.step(first);
  log.step(second);
  log.evaluated(2, 16,
                {.key = "held_out",
                 .metrics = {{"mlm_loss", 4}, {"masked", 440, true}, {"books/mlm_loss", 5}},
                 .line = "",
                 .record = {}});
  log.table(metrics::log_line::Kind::kEnd, 2, {{"steps", "2"}}, Json::object());
  log.finish();
  const metrics::RunHistory run = read_back(folder.path());
  EXPECT_TRUE(run.damage.empty()) << run.damage.front();
  EXPECT_EQ(run.last_step, 2);
  ASSERT_EQ(run.phases.size(), 2u);
  EXPECT_EQ(run.phases[1].name, "compressed");
  EXPECT_EQ(run.expected_dense_seconds, 2.5);
  EXPECT_EQ(run.expected_compressed_seconds, 1.5);
  EXPECT_EQ(run.training.at("seconds.data").at(1).value, 0.125);
  EXPECT_EQ(run.training.at("samples_per_second").at(0).value, 16);
  EXPECT_EQ(run.training.at("residual_over_sent").at(0).value, 1.5);
  EXPECT_EQ(run.evaluations.size(), 2u);
  EXPECT_EQ(run.evaluations.at("held_out.mlm_loss").at(0).value, 4);
  EXPECT_EQ(run.evaluations.at("held_out.books.mlm_loss").at(0).value, 5);
  ASSERT_EQ(run.starts.size(), 1u);
  EXPECT_EQ(run.starts[0].rows.at(0).second, "2 layers");
  EXPECT_FALSE(run.ends.at(0).time.empty());
}

// One rank per disk writes all files of the run's folder, so that the run survives the loss of a
// disk.
TEST(TrainingLog, OfAnotherDiskHasItsFiles) {
  const TemporaryFolder folder;
  const Path own = folder / "own", elsewhere = folder / "elsewhere";
  for (const bool is_elsewhere : {false, true}) {
    std::filesystem::remove_all(own);
    make_folder(own);
    TrainingLog log(
        own, {.part = LogPart::kFiles,
              .tensorboard = {.enabled = true, .folder = is_elsewhere ? elsewhere.string() : ""},
              .world_size = 2});
    log.step(record_of(1));
    log.finish();
    EXPECT_EQ(read_back(own).last_step, 1);
    EXPECT_EQ(std::filesystem::exists(own / "tensorboard"), !is_elsewhere);
    EXPECT_FALSE(std::filesystem::exists(elsewhere));
    EXPECT_EQ(log.curves(), "");
  }
}

TEST(TrainingLog, KeepsMetricsOfATaskUnderAnyName) {
  const TemporaryFolder folder;
  TrainingLog log(folder.path(), {.world_size = 2});
  StepRecord record = record_of(1);
  record.metrics = {{"loss_scale", 0.25}, {"step", 0.5}, {"phase", 0.75}};
  log.step(record);
  log.finish();
  const metrics::RunHistory run = read_back(folder.path());
  EXPECT_EQ(run.training.at("loss_scale").at(0).value, 1024);
  EXPECT_EQ(run.training.at("metrics.loss_scale").at(0).value, 0.25);
  EXPECT_EQ(run.training.at("metrics.step").at(0).value, 0.5);
  EXPECT_EQ(run.training.at("metrics.phase").at(0).value, 0.75);
}

}  // namespace
}  // namespace onebit::training
