#include "onebit/training/disk_files.h"

#include <gtest/gtest.h>

#include "onebit/base/folder.h"
#include "onebit/comm/thread_communicator.h"
#include "tests/base/temporary_folder.h"

namespace onebit::training {
namespace {

void share(const TemporaryFolder& root, const std::vector<int>& disk_of_rank) {
  comm::run_thread_world(static_cast<int>(disk_of_rank.size()), [&](comm::Communicator& one) {
    const Path output =
        root / std::to_string(disk_of_rank[static_cast<size_t>(one.rank())]) / "run";
    share_run_files(one, engine::find_disks(one, output), output,
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
    write_file_atomically(folder / "scores.json", "[]");
    write_file_atomically(folder / "recipe.json", is_old ? "recipe" : "another");
  }
  share(root, {0, 1, 1, 2});
  for (const Path& folder : {old, worse, fresh}) {
    EXPECT_EQ(text_of(folder / "config.json"), "better");
    EXPECT_EQ(text_of(folder / "scores.json"), "[]");
    EXPECT_EQ(text_of(folder / "evaluation.json"), R"({"step": 3, "f1": 0.9})");
    EXPECT_FALSE(std::filesystem::exists(folder / "incoming"));
  }
  EXPECT_EQ(text_of(fresh / "metrics.jsonl"), "{}\n{}\n");
  EXPECT_EQ(text_of(worse / "metrics.jsonl"), "{}\n");
  EXPECT_EQ(text_of(worse / "recipe.json"), "another");
  EXPECT_EQ(text_of(fresh / "recipe.json"), "(none)");
}

TEST(DiskFiles, NothingIsMadeOfNothing) {
  const TemporaryFolder root;
  share(root, {0, 1});
  EXPECT_EQ(root.entries(), 0);
}

}  // namespace
}  // namespace onebit::training
