#include "onebit/base/partial_folder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "tests/base/message_of.h"
#include "tests/base/temporary_folder.h"

namespace onebit {
namespace {

using ::testing::HasSubstr;

namespace files = std::filesystem;

void put(const Path& path) {
  std::ofstream(path) << "content";
}

TEST(PartialFolder, IsThereOnlyWhenFinished) {
  TemporaryFolder parent;
  PartialFolder writer(parent / "out/", Existing::kRefuse);
  put(writer.path() / "file");
  EXPECT_FALSE(files::exists(parent / "out"));
  writer.finish();
  EXPECT_TRUE(files::exists(parent / "out/file"));
  EXPECT_EQ(parent.entries(), 1);
}

TEST(PartialFolder, LeavesNothingWhenGivenUp) {
  TemporaryFolder parent;
  {
    PartialFolder writer(parent / "out", Existing::kRefuse);
    put(writer.path() / "file");
  }
  EXPECT_EQ(parent.entries(), 0);
}

TEST(PartialFolder, TakesAnEmptyFolderAndWhatAKilledOneLeft) {
  TemporaryFolder parent;
  files::create_directories(parent / "out");
  files::create_directories(parent / "out.partial");
  put(parent / "out.partial/old");
  put(parent / "out.partial/lock");
  PartialFolder writer(parent / "out", Existing::kRefuse);
  writer.finish();
  EXPECT_TRUE(files::is_empty(parent / "out"));
  EXPECT_EQ(parent.entries(), 1);
}

TEST(PartialFolder, TouchesNothingThatIsThere) {
  TemporaryFolder parent;
  files::create_directories(parent / "out");
  put(parent / "out/mine");
  put(parent / "file");
  EXPECT_THAT(message_of([&] { PartialFolder writer(parent / "out", Existing::kRefuse); }),
              HasSubstr("out: already exists"));
  EXPECT_THAT(message_of([&] { PartialFolder writer(parent / "file", Existing::kRefuse); }),
              HasSubstr("file: already exists"));
  EXPECT_THAT(message_of([&] { PartialFolder writer(parent / "file/below", Existing::kRefuse); }),
              HasSubstr("file/below"));
  EXPECT_THAT(message_of([] { PartialFolder writer(Path(""), Existing::kRefuse); }),
              HasSubstr("a name of its own"));
  EXPECT_TRUE(files::exists(parent / "out/mine"));
  EXPECT_EQ(parent.entries(), 2);
}

TEST(PartialFolder, ReplacesWhatIsToBeReplaced) {
  TemporaryFolder parent;
  files::create_directories(parent / "out");
  put(parent / "out/old");
  PartialFolder writer(parent / "out", Existing::kReplace);
  put(writer.path() / "new");
  EXPECT_TRUE(files::exists(parent / "out/old"));
  writer.finish();
  EXPECT_FALSE(files::exists(parent / "out/old"));
  EXPECT_TRUE(files::exists(parent / "out/new"));
  EXPECT_EQ(parent.entries(), 1);
}

TEST(PartialFolder, LeavesAnotherWritersAlone) {
  TemporaryFolder parent;
  PartialFolder first(parent / "out", Existing::kRefuse);
  put(first.path() / "file");
  EXPECT_THAT(message_of([&] { PartialFolder second(parent / "out", Existing::kRefuse); }),
              HasSubstr("another process is writing"));
  first.finish();
  EXPECT_TRUE(files::exists(parent / "out/file"));
  EXPECT_FALSE(files::exists(parent / "out/lock"));
}

TEST(PartialFolder, LeavesAFolderOfTheSameNameAlone) {
  TemporaryFolder parent;
  files::create_directories(parent / "out.partial");
  put(parent / "out.partial/mine");
  EXPECT_THAT(message_of([&] { PartialFolder writer(parent / "out", Existing::kRefuse); }),
              HasSubstr("out.partial: already exists and was not left by an interrupted run"));
  EXPECT_TRUE(files::exists(parent / "out.partial/mine"));
}

}  // namespace
}  // namespace onebit
