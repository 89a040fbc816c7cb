#include "onebit/formats/folder_writer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "tests/base/message_of.h"
#include "tests/base/temporary_folder.h"

namespace onebit::formats {
namespace {

using ::testing::HasSubstr;

namespace files = std::filesystem;

void put(const Path& path) {
  std::ofstream(path) << "content";
}

TEST(FolderWriter, IsThereOnlyWhenFinished) {
  TemporaryFolder parent;
  FolderWriter writer(parent / "out/");
  put(writer.path() / "file");
  EXPECT_FALSE(files::exists(parent / "out"));
  writer.finish();
  EXPECT_TRUE(files::exists(parent / "out/file"));
  EXPECT_EQ(parent.entries(), 1);
}

TEST(FolderWriter, LeavesNothingWhenGivenUp) {
  TemporaryFolder parent;
  {
    FolderWriter writer(parent / "out");
    put(writer.path() / "file");
  }
  EXPECT_EQ(parent.entries(), 0);
}

TEST(FolderWriter, TakesAnEmptyFolderAndWhatAKilledOneLeft) {
  TemporaryFolder parent;
  files::create_directories(parent / "out");
  files::create_directories(parent / "out.partial");
  put(parent / "out.partial/old");
  FolderWriter writer(parent / "out");
  writer.finish();
  EXPECT_TRUE(files::is_empty(parent / "out"));
  EXPECT_EQ(parent.entries(), 1);
}

TEST(FolderWriter, TouchesNothingThatIsThere) {
  TemporaryFolder parent;
  files::create_directories(parent / "out");
  put(parent / "out/mine");
  put(parent / "file");
  EXPECT_THAT(message_of([&] { FolderWriter writer(parent / "out"); }),
              HasSubstr("out: is there already"));
  EXPECT_THAT(message_of([&] { FolderWriter writer(parent / "file"); }),
              HasSubstr("file: is there already"));
  EXPECT_THAT(message_of([&] { FolderWriter writer(parent / "file/below"); }),
              HasSubstr("file/below"));
  EXPECT_THAT(message_of([] { FolderWriter writer(Path("")); }), HasSubstr("a name of its own"));
  EXPECT_TRUE(files::exists(parent / "out/mine"));
  EXPECT_EQ(parent.entries(), 2);
}

}  // namespace
}  // namespace onebit::formats
