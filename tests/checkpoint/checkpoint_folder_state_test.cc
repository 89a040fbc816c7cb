#include "onebit/exchange/checkpoint/checkpoint_folder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "onebit/data/formats/hugging_face_folder.h"
#include "onebit/ground/base/run_files.h"
#include "tests/checkpoint/disks_run.h"

namespace onebit::checkpoint {
namespace {

using ::testing::HasSubstr;

class CheckpointStateTest : public DisksTest {};

// Each file is intact, but together they are not a checkpoint.
TEST_F(CheckpointStateTest, AFileOfAnotherCheckpointIsRefused) {
  const Trial trial = {.layout = {0, 0}, .tag = tag_of_step(kSecond)};
  train(trial);
  const Path old = disk(0) / tag_of_step(kFirst), fresh = disk(0) / tag_of_step(kSecond);
  const auto expect_refused = [&](const std::string& name, const Path& other) {
    const std::string whole = read_file(fresh / name);
    write_file_atomically(fresh / name, read_file(other));
    EXPECT_THAT(error_of_resuming(trial),
                HasSubstr(name + ": is not the file that was written with this checkpoint"));
    write_file_atomically(fresh / name, whole);
    EXPECT_EQ(error_of_resuming(trial), "(no error)");
  };
  for (const int rank : {0, 1}) {
    expect_refused(shard_name(rank, 2), old / shard_name(rank, 2));
    expect_refused(shard_name(rank, 2), fresh / shard_name(1 - rank, 2));
  }
  expect_refused(model_file_name(), old / model_file_name());
}

TEST_F(CheckpointStateTest, AFolderWithTheNameOfAnotherStepIsRefused) {
  const Trial trial = {.layout = {0, 0}};
  train(trial);
  std::filesystem::rename(disk(0) / tag_of_step(kFirst), disk(0) / tag_of_step(kFirst + 1));
  EXPECT_THAT(error_of_resuming({.layout = {0, 0}, .tag = tag_of_step(kFirst + 1)}),
              HasSubstr("state.json: belongs to step 6, but its folder belongs to step 7"));
}

TEST_F(CheckpointStateTest, AFileWhoseCountersContradictEachOtherIsRefused) {
  const Trial trial = {.layout = {0, 0}, .tag = tag_of_step(kSecond)};
  train(trial);
  const Path path = disk(0) / tag_of_step(kSecond) / run_files::kState;
  Json state = read_json(path);
  state.erase("crc32c");
  write_file_atomically(path, state.dump());
  EXPECT_EQ(error_of_resuming(trial), "(no error)");
  state["state"]["engine"]["completed_steps"] = 3;
  write_file_atomically(path, state.dump());
  EXPECT_THAT(error_of_resuming(trial),
              HasSubstr(fmt::format("state.json: damaged: `step` is {}, but "
                                    "`state.engine.completed_steps` is 3",
                                    kSecond)));
  write_file_atomically(path, "[]");
  EXPECT_THAT(error_of_resuming(trial),
              HasSubstr("state.json: damaged: it contains no JSON object"));
}

// Another program that changes the file has to omit the checksum.
TEST_F(CheckpointStateTest, AFileThatStatesNoChecksumIsBelieved) {
  const Trial trial = {.layout = {0, 0}};
  train(trial);
  const Path model = disk(0) / tag_of_step(kSecond) / model_file_name();
  std::string changed = read_file(model);
  changed.replace(changed.find(formats::kChecksumKey), 6, "somebo");
  write_file_atomically(model, changed);
  EXPECT_EQ(error_of_resuming(trial), "(no error)");
}

}  // namespace
}  // namespace onebit::checkpoint
