#include "onebit/exchange/checkpoint/checkpoint.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <thread>

#include "onebit/ground/base/folder.h"
#include "tests/checkpoint/disks_run.h"

namespace onebit::checkpoint {
namespace {

namespace files = std::filesystem;
using ::testing::HasSubstr;

class CheckpointWriterTest : public DisksTest {};

// Returns which shards of kSecond are on a disk.
std::vector<int> shards_in(const Path& folder, int world) {
  std::vector<int> found;
  for (int rank = 0; rank < world; ++rank) {
    if (files::exists(folder / shard_name(rank, world))) found.push_back(rank);
  }
  return found;
}

TEST_F(CheckpointWriterTest, ADiskHasItsShardsAndCopiesAndWhatAllHave) {
  train({.layout = {0, 0, 1, 2}, .copies = 2});
  const std::string tag = tag_of_step(kSecond);
  EXPECT_EQ(shards_in(disk(0) / tag, 4), std::vector<int>({0, 1, 3}));
  EXPECT_EQ(shards_in(disk(1) / tag, 4), std::vector<int>({0, 1, 2}));
  EXPECT_EQ(shards_in(disk(2) / tag, 4), std::vector<int>({2, 3}));
  for (const char* name : {"state.json", "model/model.safetensors", "model/config.json",
                           "optimizer-00002-of-00004.safetensors"}) {
    EXPECT_EQ(read_file(disk(1) / tag / name), read_file(disk(2) / tag / name)) << name;
  }
  for (int number = 0; number < 3; ++number) {
    EXPECT_EQ(read_file(disk(number) / "latest"), tag);
    EXPECT_EQ(std::distance(files::directory_iterator(disk(number)), {}), 3);
  }
  const Json state = read_json(disk(0) / tag / "state.json");
  EXPECT_TRUE(state.contains("generation"));
  EXPECT_EQ(state.at("disks").at("of_rank"), Json({0, 0, 1, 2}));
}

TEST_F(CheckpointWriterTest, OnOneDiskNothingIsAdded) {
  train({.layout = {0, 0}, .copies = 2});
  const Json state = read_json(disk(0) / tag_of_step(kSecond) / "state.json");
  EXPECT_FALSE(state.contains("generation"));
  EXPECT_FALSE(state.contains("disks"));
  EXPECT_TRUE(resume({.layout = {0, 0}}).report.empty());
}

// A copy that was kept until the next checkpoint would take its memory twice while that is written.
TEST_F(CheckpointWriterTest, CopiesAreGoneWhenTheyAreWritten) {
  on_ranks({.layout = {0}}, [&](engine::ToyRun& run, Checkpoints& checkpoints, bool) {
    run.step();
    auto copy = std::make_shared<int>();
    const std::weak_ptr<int> seen = copy;
    checkpoints.save(run.engine(), {}, [copy = std::move(copy)](const Path&) {});
    // The writer ends without a call that waits for it.
    for (int i = 0; i < 1000 && !seen.expired(); ++i) {
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
    EXPECT_TRUE(seen.expired());
    checkpoints.wait();
  });
}

// A disk that is full for a while costs one checkpoint, not the run.
TEST_F(CheckpointWriterTest, AFailedWriteIsFollowedByTheNext) {
  on_ranks({.layout = {0, 0}, .keep_last = 1}, [&](engine::ToyRun& run, Checkpoints& checkpoints,
                                                   bool) {
    const auto save_in_vain = [&] {
      run.step();
      checkpoints.save(run.engine(), {}, [](const Path&) { fail("no space left"); });
    };
    save_in_vain();
    run.step();
    save(run, checkpoints);
    EXPECT_EQ(CheckpointFolder(disk(0)).tags(), std::vector<std::string>({tag_of_step(2)}));
    save_in_vain();
    save_in_vain();
    EXPECT_THAT(message_of([&] { checkpoints.wait_for_previous(); }), HasSubstr("no space left"));
  });
}

TEST_F(CheckpointWriterTest, TheOldOneStaysUntilEveryDiskHasTheNew) {
  const Trial trial = {.layout = {0, 1}, .keep_last = 1};
  const std::string first = tag_of_step(1), second = tag_of_step(2);
  on_ranks(trial, [&](engine::ToyRun& run, Checkpoints& checkpoints, bool rank0) {
    run.step();
    save(run, checkpoints);
    run.step();
    // For example, the other disk is full.
    checkpoints.save(run.engine(), {}, [rank0](const Path&) {
      if (!rank0) fail("no space left");
    });
    EXPECT_THAT(message_of([&] { checkpoints.wait(); }), HasSubstr("rank 1: no space left"));
  });
  for (const int number : {0, 1}) {
    EXPECT_EQ(CheckpointFolder(disk(number)).tags(), std::vector<std::string>({first}));
    EXPECT_FALSE(files::exists(CheckpointFolder(disk(number)).partial_folder(second)));
  }
  // The checkpoint can be renamed on only one disk.
  on_ranks(trial, [&](engine::ToyRun& run, Checkpoints& checkpoints, bool rank0) {
    run.step();
    run.step();
    checkpoints.save(run.engine(), {}, [&](const Path&) {
      if (rank0) return;
      files::remove(disk(1) / "latest");
      make_folder(disk(1) / "latest" / "in the way");
    });
    EXPECT_THAT(message_of([&] { checkpoints.wait(); }), HasSubstr("not written, rank 1"));
  });
  for (const int number : {0, 1}) {
    EXPECT_TRUE(files::exists(CheckpointFolder(disk(number)).folder(first))) << number;
  }
  files::remove_all(disk(1) / "latest");
  on_ranks(trial, [&](engine::ToyRun& run, Checkpoints& checkpoints, bool) {
    for (int step = 0; step < 3; ++step) run.step();
    save(run, checkpoints);
  });
  for (const int number : {0, 1}) {
    EXPECT_EQ(CheckpointFolder(disk(number)).tags(), std::vector<std::string>({tag_of_step(3)}));
  }
}

}  // namespace
}  // namespace onebit::checkpoint
