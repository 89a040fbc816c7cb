#include "onebit/exchange/checkpoint/checkpoint_folder.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include "onebit/ground/base/error.h"
#include "onebit/ground/base/folder.h"
#include "tests/base/message_of.h"

namespace onebit::checkpoint {
namespace {

class CheckpointFolderTest : public testing::Test {
 protected:
  CheckpointFolderTest()
      : root_(std::filesystem::temp_directory_path() /
              ("onebit_checkpoint_folder_" + std::to_string(::getpid()))),
        folder_(root_) {}
  ~CheckpointFolderTest() override { std::filesystem::remove_all(root_); }

  void publish(const std::string& tag, const std::string& content) {
    folder_.begin(tag);
    write_file_atomically(folder_.partial_folder(tag) / "state.json", content);
    folder_.publish(tag);
  }

  Path root_;
  CheckpointFolder folder_;
};

TEST_F(CheckpointFolderTest, NothingThereIsNoCheckpoint) {
  EXPECT_FALSE(folder_.latest().has_value());
  EXPECT_TRUE(folder_.tags().empty());
}

TEST_F(CheckpointFolderTest, UnfinishedTagIsNeverSeen) {
  publish(tag_of_step(2), "two");
  folder_.begin(tag_of_step(4));
  write_file_atomically(folder_.partial_folder(tag_of_step(4)) / "state.json", "half");
  EXPECT_EQ(folder_.latest(), "global_step2");
  EXPECT_EQ(folder_.tags(), std::vector<std::string>{"global_step2"});
  make_folder(root_ / "mine.partial");
  folder_.begin(tag_of_step(6));
  EXPECT_FALSE(std::filesystem::exists(folder_.partial_folder(tag_of_step(4))));
  EXPECT_TRUE(std::filesystem::exists(root_ / "mine.partial"));
}

TEST_F(CheckpointFolderTest, SameTagIsReplacedWhole) {
  publish("global_step2", "old");
  publish("global_step2", "new");
  EXPECT_EQ(read_file(root_ / "global_step2" / "state.json"), "new");
  for (const auto& item : std::filesystem::directory_iterator(root_)) {
    const std::string name = item.path().filename().string();
    EXPECT_TRUE(name == "latest" || name == "global_step2") << name;
  }
}

TEST_F(CheckpointFolderTest, TheNewestIsWhatARunWouldGoOnFrom) {
  EXPECT_EQ(folder_.newest(), "");
  for (const int step : {2, 4, 6}) publish(tag_of_step(step), "x");
  folder_.point_latest_at("global_step4");
  EXPECT_EQ(folder_.newest(), "global_step4");
  for (const char* absent : {"global_step5", "", "global_step6.partial"}) {
    folder_.point_latest_at(absent);
    EXPECT_EQ(folder_.newest(), "global_step6") << absent;
  }
}

TEST_F(CheckpointFolderTest, PruneKeepsTheNewestAndTheLatest) {
  for (const int step : {9, 10, 20, 100}) publish(tag_of_step(step), "x");
  folder_.prune(2);
  EXPECT_EQ(folder_.tags(), (std::vector<std::string>{"global_step20", "global_step100"}));
}

TEST_F(CheckpointFolderTest, PruneGivesUpAFutureThatTheRunWasTakenBackFrom) {
  for (const int step : {10, 20, 100, 30}) publish(tag_of_step(step), "x");
  folder_.prune(3);
  EXPECT_EQ(folder_.tags(),
            (std::vector<std::string>{"global_step10", "global_step20", "global_step30"}));
  for (const int step : {100, 40}) publish(tag_of_step(step), "x");
  folder_.prune(9);
  EXPECT_EQ(folder_.tags(), (std::vector<std::string>{"global_step10", "global_step20",
                                                      "global_step30", "global_step40"}));
  publish(tag_of_step(5), "resumed from an early one");
  folder_.prune(1);
  EXPECT_EQ(folder_.tags(), (std::vector<std::string>{"global_step5"}));
}

TEST_F(CheckpointFolderTest, LatestThatNamesNothingIsAnError) {
  std::filesystem::create_directories(root_);
  write_file_atomically(root_ / "latest", "global_step7\n");
  EXPECT_NE(message_of([&] { folder_.latest(); }).find("there is no other checkpoint"),
            std::string::npos);
  write_file_atomically(root_ / "latest", "global_step7.partial");
  make_folder(root_ / "global_step7.partial");
  EXPECT_NE(
      message_of([&] { folder_.latest(); }).find("\"global_step7.partial\", which is incomplete"),
      std::string::npos);
  std::filesystem::remove_all(root_ / "global_step7.partial");
  write_file_atomically(root_ / "latest", "global_step7\n");
  for (const int step : {2, 4})
    std::filesystem::create_directories(folder_.folder(tag_of_step(step)));
  const std::string message = message_of([&] { folder_.latest(); });
  EXPECT_NE(message.find("\"global_step7\""), std::string::npos) << message;
  EXPECT_NE(message.find("--resume TAG"), std::string::npos) << message;
  EXPECT_NE(message.find("global_step4, global_step2"), std::string::npos) << message;
}

}  // namespace
}  // namespace onebit::checkpoint
