#include "onebit/ground/base/partial_file.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mount.h>
#include <unistd.h>

#include <csignal>

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

// Ends the process like Ctrl-C and kill -9.
TEST(PartialFile, LeavesNothingIfItsProcessIsKilled) {
  const TemporaryFolder folder;
  const int unnamed = ::open(folder.path().c_str(), O_WRONLY | O_TMPFILE | O_CLOEXEC, 0600);
  if (unnamed < 0) GTEST_SKIP() << "the file system has no files without a name";
  ::close(unnamed);
  EXPECT_EXIT(
      {
        PartialFile file(folder / "f");
        file.write(std::string(3 << 20, 'x'));  // more than is buffered
        ::raise(SIGKILL);
      },
      testing::KilledBySignal(SIGKILL), "");
  EXPECT_EQ(folder.entries(), 0);
}

TEST(PartialFile, LeavesAPartialFileOfTheUserAlone) {
  const TemporaryFolder folder;
  FileWriter mine(folder / "f.partial");
  mine.write("mine");
  mine.finish();
  write_file_atomically(folder / "f", "whole");
  EXPECT_EQ(read_file(folder / "f"), "whole");
  EXPECT_EQ(read_file(folder / "f.partial"), "mine");
  EXPECT_EQ(folder.entries(), 2);
}

TEST(PartialFile, KeepsWhatCannotBeRenamedAndNamesIt) {
  const TemporaryFolder folder;
  PartialFile file(folder / "f");
  file.write("text");
  std::filesystem::create_directories(folder / "f" / "in");
  const std::string message = message_of([&] { file.finish(); });
  EXPECT_THAT(message, HasSubstr("cannot rename"));
  EXPECT_THAT(message, HasSubstr("what was written is in " + (folder / "f.partial").string()));
  EXPECT_EQ(read_file(folder / "f.partial"), "text");
}

// The user gave the final name.
TEST(PartialFile, ErrorsNameTheFileThatWasAskedFor) {
  const TemporaryFolder folder;
  const Path path = folder / "nowhere" / "f";
  EXPECT_EQ(message_of([&] { PartialFile file(path); }),
            path.string() + ": cannot create: No such file or directory");
}

// As `docker -v file:/file` does. Only root can mount.
TEST(PartialFile, RewritesAFileThatIsMounted) {
  const TemporaryFolder folder;
  write_file_atomically(folder / "source", "old and longer");
  write_file_atomically(folder / "f", "hidden by the mount");
  if (::mount((folder / "source").c_str(), (folder / "f").c_str(), "", MS_BIND, nullptr) != 0) {
    GTEST_SKIP() << "mounting is not allowed here";
  }
  std::string message;
  try {
    write_file_atomically(folder / "f", "new");
  } catch (const std::exception& error) {
    message = error.what();
  }
  ::umount2((folder / "f").c_str(), MNT_DETACH);
  EXPECT_EQ(message, "");
  EXPECT_EQ(read_file(folder / "source"), "new");
  EXPECT_EQ(folder.entries(), 2);
}

TEST(PartialFile, WritesIntoDevicesAndLeavesThem) {
  PartialFile file("/dev/null");
  file.write("text");
  file.finish();
  EXPECT_TRUE(std::filesystem::is_character_file("/dev/null"));
  EXPECT_THAT(message_of([] { write_file_atomically("/dev/full", "text"); }),
              HasSubstr("the disk is full"));
  EXPECT_TRUE(std::filesystem::is_character_file("/dev/full"));
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
