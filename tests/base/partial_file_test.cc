#include "onebit/base/partial_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/base/message_of.h"
#include "tests/base/temporary_folder.h"

namespace onebit {
namespace {

using testing::HasSubstr;

TEST(PartialFile, IsThereOnceItIsFinished) {
  const TemporaryFolder folder;
  write_file_atomically(folder / "f", "old");
  PartialFile file(folder / "f");
  file.write("new ");
  file.write("text");
  EXPECT_EQ(file.size_bytes(), 8u);
  EXPECT_EQ(read_file(folder / "f"), "old");
  EXPECT_TRUE(std::filesystem::exists(folder / "f.partial"));
  file.finish();
  EXPECT_EQ(read_file(folder / "f"), "new text");
  EXPECT_EQ(folder.entries(), 1);
}

TEST(PartialFile, LeavesNothingUnlessFinished) {
  const TemporaryFolder folder;
  {
    PartialFile file(folder / "f");
    file.write("a part");
  }
  EXPECT_EQ(folder.entries(), 0);
}

TEST(PartialFile, LeavesNothingWhereItCannotBeRenamed) {
  const TemporaryFolder folder;
  PartialFile file(folder / "f");
  std::filesystem::create_directories(folder / "f" / "in");
  EXPECT_THAT(message_of([&] { file.finish(); }), HasSubstr("cannot rename"));
  EXPECT_EQ(folder.entries(), 1);
}

TEST(PartialFile, IsWrittenWhereALinkLeads) {
  const TemporaryFolder folder;
  std::filesystem::create_directory(folder / "there");
  std::filesystem::create_symlink("there/f", folder / "link");
  for (const char* text : {"first", "second"}) {
    PartialFile file(folder / "link");
    file.write(text);
    file.finish();
    EXPECT_EQ(read_file(folder / "there" / "f"), text);
    EXPECT_TRUE(std::filesystem::is_symlink(folder / "link"));
  }
}

}  // namespace
}  // namespace onebit
