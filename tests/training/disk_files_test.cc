#include "onebit/training/training/disk_files.h"
#include "onebit/ground/base/json.h"

#include <gtest/gtest.h>

#include "onebit/exchange/comm/thread_communicator.h"
#include "onebit/ground/base/folder.h"
#include "onebit/ground/metrics/log_line.h"
#include "tests/base/temporary_folder.h"

namespace onebit::training {
namespace {

void share(const TemporaryFolder& root, const std::vector<int>& disk_of_rank) {
  comm::run_thread_world(static_cast<int>(disk_of_rank.size()), [&](comm::Communicator& one) {
    const Path output =
        root / std::to_string(disk_of_rank[static_cast<size_t>(one.rank())]) / "run";
    share_run_files(one, checkpoint::find_disks(one, output), output, 3,
                    [](const Json& a, const Json& b) { return a.at("f1") > b.at("f1"); });
  });
}

std::string text_of(const Path& path) {
  return std::filesystem::exists(path) ? read_file(path) : "(none)";
}

TEST(DiskFiles, ANewDiskGetsTheLogAndTheBestModel) {
  const TemporaryFolder root;
  const Path old = root / "0/run", worse = root / "1/run", fresh = root / "2/run";
  for (const Path& folder : {old, worse}) {
    make_folder(folder / "global_step3");
    const bool is_old = folder == old;
    write_file_atomically(folder / "metrics.jsonl", is_old ? "{}\n{}\n" : "{}\n");
    write_file_atomically(folder / "evaluation.json",
                          is_old ? R"({"step": 3, "f1": 0.9})" : R"({"step": 2, "f1": 0.7})");
    write_file_atomically(folder / "config.json", is_old ? "better" : "worse");
    make_folder(folder / "1_Pooling");
    write_file_atomically(folder / "1_Pooling/config.json", is_old ? "mean" : "first");
    write_file_atomically(folder / "scores.json", "[]");
    write_file_atomically(folder / "recipe.json", is_old ? "recipe" : "another");
  }
  share(root, {0, 1, 1, 2});
  for (const Path& folder : {old, worse, fresh}) {
    EXPECT_EQ(text_of(folder / "config.json"), "better");
    EXPECT_EQ(text_of(folder / "1_Pooling/config.json"), "mean");
    EXPECT_EQ(text_of(folder / "scores.json"), "[]");
    EXPECT_EQ(text_of(folder / "evaluation.json"), R"({"step": 3, "f1": 0.9})");
    EXPECT_FALSE(std::filesystem::exists(folder / "incoming"));
  }
  EXPECT_EQ(text_of(fresh / "metrics.jsonl"), "{}\n{}\n");
  EXPECT_EQ(text_of(worse / "metrics.jsonl"), "{}\n");
  EXPECT_EQ(text_of(worse / "recipe.json"), "another");
  EXPECT_EQ(text_of(fresh / "recipe.json"), "(none)");
}

std::string steps_to(int64_t last, const std::string& made_on) {
  std::string text;
  for (int64_t step = 1; step <= last; ++step) {
    Json line = metrics::log_line::begun(metrics::log_line::Kind::kStep, step);
    line["on"] = made_on;
    text += line.dump() + "\n";
  }
  return text;
}

// A host that was unavailable returns with only the beginning of the run.
TEST(DiskFiles, AStaleDiskGetsTheStepsItLacks) {
  const TemporaryFolder root;
  const Path stale = root / "0/run", full = root / "1/run";
  for (const Path& folder : {stale, full}) {
    const bool is_full = folder == full;
    make_folder(folder / "tensorboard");
    write_file_atomically(folder / "metrics.jsonl", is_full ? steps_to(3, "b") : steps_to(2, "a"));
    write_file_atomically(folder / "tensorboard/events.1", is_full ? "to step 2" : "to step 1");
    if (is_full) write_file_atomically(folder / "tensorboard/events.2", "to step 3");
  }
  write_file_atomically(stale / "tensorboard/events.0", "to step 2");
  share(root, {0, 1});
  for (const Path& folder : {stale, full}) {
    EXPECT_EQ(text_of(folder / "metrics.jsonl"), steps_to(3, "b"));
    EXPECT_EQ(text_of(folder / "tensorboard/events.0"), "(none)");
    EXPECT_EQ(text_of(folder / "tensorboard/events.1"), "to step 2");
    EXPECT_EQ(text_of(folder / "tensorboard/events.2"), "to step 3");
    EXPECT_FALSE(std::filesystem::exists(folder / "incoming"));
  }
}

// Steps after the one from which the run continues are dropped anyway.
TEST(DiskFiles, OnlyStepsThatCountAreCompared) {
  const TemporaryFolder root;
  for (const char* disk : {"0", "1"}) make_folder(root / disk / "run");
  write_file_atomically(root / "0/run/metrics.jsonl", steps_to(3, "a"));
  write_file_atomically(root / "1/run/metrics.jsonl", steps_to(7, "b"));
  share(root, {0, 1});
  EXPECT_EQ(text_of(root / "0/run/metrics.jsonl"), steps_to(3, "a"));
  EXPECT_EQ(text_of(root / "1/run/metrics.jsonl"), steps_to(7, "b"));
}

TEST(DiskFiles, NothingIsMadeOfNothing) {
  const TemporaryFolder root;
  share(root, {0, 1});
  EXPECT_EQ(root.entries(), 0);
}

}  // namespace
}  // namespace onebit::training
