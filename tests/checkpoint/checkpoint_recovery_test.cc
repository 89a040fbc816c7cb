// Checkpoints of runs whose ranks do not share a disk: if parts on a disk are lost, damaged or
// stale, from which checkpoint does the run continue?
#include "onebit/exchange/checkpoint/checkpoint_recovery.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/base/damage.h"
#include "tests/checkpoint/disks_run.h"

namespace onebit::checkpoint {
namespace {

namespace files = std::filesystem;
using ::testing::HasSubstr;

class CheckpointRecoveryTest : public DisksTest {};

const std::vector<Layout> kLayouts = {{0, 0},       {0, 1},       {0, 0, 1},    {0, 1, 2},
                                      {0, 0, 1, 1}, {0, 1, 0, 1}, {0, 1, 1, 2}, {0, 0, 0, 1}};

std::string name_of(const Layout& layout) {
  return fmt::format("disks {}", fmt::join(layout, ", "));
}

TEST_F(CheckpointRecoveryTest, ResumesBitForBitOnAnyDisks) {
  for (const char* optimizer : {kAdam, kOneBit}) {
    for (const Layout& layout : kLayouts) {
      for (const int64_t copies : {1, 2}) {
        SCOPED_TRACE(fmt::format("{}, {}, {} copies", optimizer, name_of(layout), copies));
        for (int number = 0; number < 3; ++number) files::remove_all(disk(number));
        const Trial trial = {.optimizer = optimizer, .layout = layout, .copies = copies};
        const std::vector<double> unbroken = train(trial);
        expect_continues(trial, kSecond, unbroken);
        Trial back = trial;
        back.tag = tag_of_step(kFirst);
        expect_continues(back, kFirst, unbroken);
      }
    }
  }
}

TEST_F(CheckpointRecoveryTest, WithCopiesALostDiskLosesNothing) {
  for (const char* optimizer : {kAdam, kOneBit}) {
    for (const Layout& layout : kLayouts) {
      const int disks = comm::Nodes(layout).count();
      if (disks == 1) continue;
      for (int lost = 0; lost < disks; ++lost) {
        SCOPED_TRACE(fmt::format("{}, disk {} lost", name_of(layout), lost));
        for (int number = 0; number < 3; ++number) files::remove_all(disk(number));
        const Trial trial = {.optimizer = optimizer, .layout = layout, .copies = 2};
        const std::vector<double> unbroken = train(trial);
        files::remove_all(disk(lost));
        expect_continues(trial, kSecond, unbroken);
        EXPECT_TRUE(files::exists(disk(lost) / tag_of_step(kSecond) / "model/config.json"));
      }
    }
  }
}

TEST_F(CheckpointRecoveryTest, DamageIsReplacedByTheCopy) {
  const Trial trial = {.layout = {0, 0, 1}, .copies = 2};
  const std::vector<double> unbroken = train(trial);
  const Path one = shard(0, kSecond, 0, 3), other = shard(1, kSecond, 2, 3);
  const std::string whole = read_file(one), other_whole = read_file(other);
  const auto expect_whole = [&] {
    EXPECT_EQ(read_file(one), whole);
    EXPECT_EQ(read_file(other), other_whole);
    for (const int number : {0, 1}) {
      EXPECT_FALSE(files::exists(disk(number) / tag_of_step(kSecond) / "incoming"));
    }
  };
  change_last_byte(one);
  files::resize_file(other, files::file_size(other) / 2);
  const Resumed resumed = resume(trial);
  EXPECT_EQ(resumed.tag, tag_of_step(kSecond));
  EXPECT_EQ(resumed.losses, std::vector<double>(unbroken.begin() + 3, unbroken.end()));
  const std::string report = fmt::format("{}", fmt::join(resumed.report, "\n"));
  EXPECT_THAT(report, HasSubstr("shards 1-2 from "));
  EXPECT_THAT(report, HasSubstr("shards 0-1 from "));
  EXPECT_THAT(report, HasSubstr("optimizer-00000-of-00003.safetensors: damaged"));
  EXPECT_THAT(report, HasSubstr("replaced by the copy of another disk"));
  EXPECT_THAT(report, HasSubstr("received shard 0 from another disk"));
  expect_whole();
  files::remove(one);
  files::remove(other);
  expect_continues(trial, kSecond, unbroken);
  expect_whole();
  // The copy at the other disk counts as much as a rank's own.
  const Path copy = shard(1, kSecond, 0, 3);
  change_last_byte(copy);
  expect_continues(trial, kSecond, unbroken);
  EXPECT_EQ(read_file(copy), whole);
}

// For example, the shards of two ranks have swapped names: each file is intact.
TEST_F(CheckpointRecoveryTest, AnotherFileIsReplacedByTheCopy) {
  const Trial trial = {.layout = {0, 1}, .copies = 2};
  const std::vector<double> unbroken = train(trial);
  const Path changed = shard(0, kSecond, 0, 2);
  const std::string whole = read_file(changed);
  write_file_atomically(changed, read_file(shard(0, kSecond, 1, 2)));
  const Resumed resumed = resume(trial);
  EXPECT_EQ(resumed.losses, std::vector<double>(unbroken.begin() + 3, unbroken.end()));
  EXPECT_THAT(fmt::format("{}", fmt::join(resumed.report, "\n")),
              HasSubstr("is not the file that was written with this checkpoint"));
  EXPECT_EQ(read_file(changed), whole);
}

TEST_F(CheckpointRecoveryTest, AFileInAFolderOfTheModelIsRestored) {
  const Trial trial = {.layout = {0, 1}, .copies = 2};
  const std::vector<double> unbroken = train(trial);
  const Path lost = disk(1) / tag_of_step(kSecond) / "model/1_Pooling/config.json";
  ASSERT_TRUE(files::remove(lost));
  expect_continues(trial, kSecond, unbroken);
  EXPECT_EQ(read_file(lost), "{}");
}

// A full disk does not prevent continuing.
TEST_F(CheckpointRecoveryTest, DamageThatCannotBeReplacedIsReadFromACopy) {
  const Trial trial = {.layout = {0, 1}, .copies = 2};
  const std::vector<double> unbroken = train(trial);
  const Path place = shard(1, kSecond, 1, 2);
  files::remove(place);
  files::create_directory(place);
  const Resumed resumed = resume(trial);
  EXPECT_EQ(resumed.losses, std::vector<double>(unbroken.begin() + 3, unbroken.end()));
  const std::string report = fmt::format("{}", fmt::join(resumed.report, "\n"));
  EXPECT_THAT(report, HasSubstr("read from another disk"));
  EXPECT_THAT(report, HasSubstr("keeps fewer copies until the next checkpoint: "));
}

TEST_F(CheckpointRecoveryTest, WithoutACopyTheRunContinuesFromAnOlderCheckpoint) {
  const Trial trial = {.layout = {0, 1, 1}};
  const std::vector<double> unbroken = train(trial);
  change_last_byte(shard(1, kSecond, 2, 3));
  testing::internal::CaptureStderr();
  expect_continues(trial, kFirst, unbroken);
  const std::string said = testing::internal::GetCapturedStderr();
  EXPECT_THAT(said, HasSubstr("global_step9 cannot be used: shard 2 of 3, stored on "));
  EXPECT_THAT(said, HasSubstr("is missing or damaged"));
  EXPECT_THAT(said, HasSubstr("the run continues from global_step6 instead"));
  files::remove(shard(1, kSecond, 2, 3));
  expect_continues(trial, kFirst, unbroken);
  Trial asked = trial;
  asked.tag = tag_of_step(kSecond);
  EXPECT_THAT(error_of_resuming(asked), HasSubstr("--resume global_step6"));
  change_last_byte(shard(0, kFirst, 0, 3));
  EXPECT_EQ(error_of_resuming(asked).find("--resume"), std::string::npos);
}

// The message for each kind of damage to the newest checkpoint in a folder that all ranks share, or
// that a single rank has.
TEST_F(CheckpointRecoveryTest, OnOneDiskTheRunContinuesFromAnOlderCheckpoint) {
  const Path newest = disk(0) / tag_of_step(kSecond);
  const std::vector<std::pair<std::function<void(int)>, const char*>> damages = {
      {[&](int world) { change_last_byte(shard(0, kSecond, 0, world)); }, "safetensors: damaged"},
      {[&](int world) { files::remove(shard(0, kSecond, 0, world)); }, "is missing or damaged"},
      {[&](int) { files::remove(newest / "state.json"); }, "global_step9 cannot be used: "},
      {[&](int) { write_file_atomically(newest / "state.json", "{"); }, "state.json:1:"},
      {[&](int) { write_file_atomically(newest / "state.json", "{}"); },
       "state.json: damaged: a JSON text is not as expected: key 'step' "},
      {[&](int) { change_last_byte(newest / "model/model.safetensors"); }, "safetensors: damaged"},
      {[&](int) { files::remove_all(newest); }, "latest: names the checkpoint \"global_step9\""}};
  for (const Layout& layout : {Layout{0}, Layout{0, 0, 0}}) {
    for (const auto& [damage, words] : damages) {
      SCOPED_TRACE(fmt::format("{}: {}", name_of(layout), words));
      files::remove_all(disk(0));
      const std::vector<double> unbroken = train({.layout = layout});
      damage(static_cast<int>(layout.size()));
      testing::internal::CaptureStderr();
      expect_continues({.layout = layout}, kFirst, unbroken);
      const std::string said = testing::internal::GetCapturedStderr();
      EXPECT_THAT(said, HasSubstr(words));
      EXPECT_THAT(said, HasSubstr("the run continues from global_step6 instead"));
      const std::string asked = error_of_resuming({.layout = layout, .tag = "global_step9"});
      EXPECT_THAT(asked, HasSubstr(files::exists(newest) ? "--resume global_step6"
                                                         : "it contains global_step6"));
    }
  }
}

// Falling back would lose the whole run, so only its owner may decide that.
TEST_F(CheckpointRecoveryTest, OnOneDiskAllOfThemDamagedIsAnError) {
  train({.layout = {0, 0}});
  change_last_byte(shard(0, kFirst, 1, 2));
  files::remove(disk(0) / tag_of_step(kSecond) / "state.json");
  const std::string message = error_of_resuming({.layout = {0, 0}});
  EXPECT_THAT(message, HasSubstr("no checkpoint is intact: global_step6 cannot be used: "));
  EXPECT_THAT(message, HasSubstr("global_step9/state.json"));
  EXPECT_THAT(message,
              HasSubstr("from a copy of the folder, or start a new run in another folder"));
}

// A copy of a checkpoint under another name is as new as the original.
TEST_F(CheckpointRecoveryTest, ACopyUnderAnotherNameServesWhenItIsNeeded) {
  const std::vector<double> unbroken = train({.layout = {0, 0}});
  const Path newest = disk(0) / tag_of_step(kSecond);
  files::copy(newest, disk(0) / "before", files::copy_options::recursive);
  expect_continues({.layout = {0, 0}}, kSecond, unbroken);
  const Resumed asked = resume({.layout = {0, 0}, .tag = "before"});
  EXPECT_EQ(asked.losses, std::vector<double>(unbroken.begin() + 3, unbroken.end()));
  change_last_byte(shard(0, kSecond, 0, 2));
  EXPECT_EQ(resume({.layout = {0, 0}}).tag, "before");
}

TEST_F(CheckpointRecoveryTest, WithoutAWholeCheckpointTheErrorReportsWhatIsMissing) {
  const Trial trial = {.layout = {0, 0, 1}};
  train(trial);
  files::remove_all(disk(1));
  for (const Layout& left : {Layout{0, 0, 1}, Layout{0, 1}, Layout{0, 0}, Layout{0}}) {
    SCOPED_TRACE(name_of(left));
    const std::string message = error_of_resuming({.layout = left});
    EXPECT_THAT(message, HasSubstr("no checkpoint is intact on the disks of "));
    EXPECT_THAT(message, HasSubstr("global_step9 cannot be used: shard 2 of 3, stored on "));
    EXPECT_THAT(message, HasSubstr("disk 1, is missing"));
    EXPECT_THAT(message, HasSubstr("global_step6 cannot be used"));
    EXPECT_THAT(message, HasSubstr("run.checkpoint_copies 2"));
    EXPECT_FALSE(files::exists(disk(1)));
  }
}

TEST_F(CheckpointRecoveryTest, TheFilesThatAllHaveComeFromAnotherDisk) {
  const Trial trial = {.layout = {0, 1}};
  const std::vector<double> unbroken = train(trial);
  const Path folder = disk(1) / tag_of_step(kSecond);
  const auto check = [&] {
    expect_continues(trial, kSecond, unbroken);
    for (const char* name : {"state.json", "model/model.safetensors", "model/config.json"}) {
      EXPECT_EQ(read_file(folder / name), read_file(disk(0) / tag_of_step(kSecond) / name)) << name;
    }
    EXPECT_EQ(std::distance(files::directory_iterator(folder), {}), 3);
  };
  change_last_byte(folder / "model/model.safetensors");
  check();
  files::remove(folder / "model/config.json");
  check();
  files::remove_all(folder / "model");
  check();
  std::string state = read_file(folder / "state.json");
  state.replace(state.find("\"samples\""), 9, "\"symples\"");
  write_file_atomically(folder / "state.json", state);
  check();
}

TEST_F(CheckpointRecoveryTest, AStaleFolderOfTheSameStepIsNotMixedIn) {
  const Trial trial = {.layout = {0, 1}};
  train(trial);
  files::copy(disk(1), root_ / "stale", files::copy_options::recursive);
  const std::vector<double> unbroken = [&] {
    files::remove_all(disk(0));
    files::remove_all(disk(1));
    return train(trial);
  }();
  // The disk's part of the newest checkpoint is a leftover of another run with the same steps.
  const Path folder = disk(1) / tag_of_step(kSecond);
  files::remove_all(folder);
  files::copy(root_ / "stale" / tag_of_step(kSecond), folder, files::copy_options::recursive);
  expect_continues(trial, kFirst, unbroken);
  // With copies the other disk has all of it, and the stale folder is replaced.
  Trial copies = trial;
  copies.copies = 2;
  files::remove_all(disk(0));
  files::remove_all(disk(1));
  train(copies);
  files::remove_all(folder);
  files::copy(root_ / "stale" / tag_of_step(kSecond), folder, files::copy_options::recursive);
  testing::internal::CaptureStderr();
  expect_continues(copies, kSecond, unbroken);
  EXPECT_THAT(testing::internal::GetCapturedStderr(),
              testing::HasSubstr(" differs from the one on "));
  EXPECT_EQ(read_file(folder / "state.json"),
            read_file(disk(0) / tag_of_step(kSecond) / "state.json"));
}

// Every disk has the complete new checkpoint before any disk renames it to its final name.
TEST_F(CheckpointRecoveryTest, AKillBetweenTwoPublishingDisksLosesNothing) {
  for (const int late : {0, 1}) {
    files::remove_all(disk(0));
    files::remove_all(disk(1));
    const Trial trial = {.layout = {0, 1}};
    const std::vector<double> unbroken = train(trial);
    const CheckpointFolder folder(disk(late));
    const std::string tag = tag_of_step(kSecond);
    files::rename(folder.folder(tag), folder.partial_folder(tag));
    folder.point_latest_at(tag_of_step(kFirst));
    expect_continues(trial, kSecond, unbroken);
    EXPECT_TRUE(files::exists(folder.folder(tag)));
    EXPECT_FALSE(files::exists(folder.partial_folder(tag)));
    // A checkpoint that no disk has published was never complete.
    for (const int number : {0, 1}) {
      const CheckpointFolder own(disk(number));
      files::rename(own.folder(tag), own.partial_folder(tag));
      own.point_latest_at(tag_of_step(kFirst));
    }
    expect_continues(trial, kFirst, unbroken);
  }
}

TEST_F(CheckpointRecoveryTest, AfterAKillBeforeADiskHasAllTheRunContinuesFromAnOlderCheckpoint) {
  const Trial trial = {.layout = {0, 1}};
  const std::vector<double> unbroken = train(trial);
  const CheckpointFolder folder(disk(1));
  const std::string tag = tag_of_step(kSecond);
  for (const char* lost : {"state.json", "optimizer-00001-of-00002.safetensors"}) {
    files::remove_all(disk(0));
    files::remove_all(disk(1));
    train(trial);
    files::rename(folder.folder(tag), folder.partial_folder(tag));
    files::remove(folder.partial_folder(tag) / lost);
    folder.point_latest_at(tag_of_step(kFirst));
    expect_continues(trial, kFirst, unbroken);
  }
}

// A run that was reset to an older checkpoint continues from it, not from its newer leftovers.
TEST_F(CheckpointRecoveryTest, NewerCheckpointsThanEveryLatestAreNotUsed) {
  const Trial trial = {.layout = {0, 1}};
  const std::vector<double> unbroken = train(trial);
  for (const int number : {0, 1}) {
    CheckpointFolder(disk(number)).point_latest_at(tag_of_step(kFirst));
  }
  expect_continues(trial, kFirst, unbroken);
}

// Other numbers of ranks, other disks, some of them new.
TEST_F(CheckpointRecoveryTest, OtherRanksReadShardsFromWhoeverHasThem) {
  const std::vector<std::pair<Layout, Layout>> moves = {{{0, 0, 1, 1}, {0, 1}},
                                                        {{0, 1}, {0, 0, 1, 1}},
                                                        {{0, 1, 2}, {2, 1, 0, 3}},
                                                        {{0, 1}, {1, 0, 2}},
                                                        {{0, 0, 1}, {2, 1, 0}}};
  for (const auto& [from, to] : moves) {
    SCOPED_TRACE(name_of(from) + " to " + name_of(to));
    for (int number = 0; number < 4; ++number) files::remove_all(disk(number));
    const std::vector<double> unbroken = train({.optimizer = kAdam, .layout = from});
    const Resumed resumed = resume({.optimizer = kAdam, .layout = to});
    EXPECT_EQ(resumed.tag, tag_of_step(kSecond));
    for (size_t i = 0; i < resumed.losses.size(); ++i) {
      EXPECT_NEAR(resumed.losses[i], unbroken[i + 3], 1e-4);
    }
    // With the files of all disks in one folder, the same ranks continue in the same way.
    for (int number = 0; number < 4; ++number) files::remove_all(disk(number));
    train({.layout = from});
    files::remove_all(disk(9));
    for (const int number : from) {
      files::copy(disk(number), disk(9),
                  files::copy_options::recursive | files::copy_options::skip_existing);
    }
    const Resumed shared = resume({.layout = Layout(to.size(), 9)});
    const Resumed apart = resume({.layout = to});
    EXPECT_EQ(apart.tag, tag_of_step(kSecond));
    EXPECT_EQ(apart.losses, shared.losses);
  }
}

TEST_F(CheckpointRecoveryTest, AHostAloneContinuesWithCopiesOfAll) {
  train({.optimizer = kAdam, .layout = {0, 1}, .copies = 2});
  const Resumed both = resume({.optimizer = kAdam, .layout = {0, 1}});
  const Resumed one = resume({.optimizer = kAdam, .layout = {1}});
  EXPECT_EQ(one.tag, tag_of_step(kSecond));
  ASSERT_EQ(one.losses.size(), both.losses.size());
  for (size_t i = 0; i < one.losses.size(); ++i) {
    EXPECT_NEAR(one.losses[i], both.losses[i], 1e-4);
  }
}

// A run on one disk moves to hosts with separate disks.
TEST_F(CheckpointRecoveryTest, ACheckpointOfOneDiskServesMany) {
  const std::vector<double> unbroken = train({.layout = {0, 0}});
  expect_continues({.layout = {0, 1}}, kSecond, unbroken);
}

TEST_F(CheckpointRecoveryTest, WithoutAnyThereIsNone) {
  on_ranks({.layout = {0, 1}}, [](engine::ToyRun&, Checkpoints& checkpoints, bool) {
    EXPECT_FALSE(checkpoints.open());
  });
  EXPECT_THAT(
      error_of_resuming({.layout = {0, 1}, .tag = "global_step3"}),
      HasSubstr("contains no checkpoint \"global_step3\"; it contains no checkpoint at all"));
}

}  // namespace
}  // namespace onebit::checkpoint
