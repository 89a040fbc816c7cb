#include "onebit/ground/base/file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <fstream>

#include "tests/base/message_of.h"
#include "tests/base/temporary_folder.h"

namespace onebit {
namespace {

using testing::HasSubstr;

std::string text_of(const MappedFile& file) {
  return {reinterpret_cast<const char*>(file.bytes().data()), file.bytes().size()};
}

std::string some_bytes(size_t count) {
  std::string bytes(count, '\0');
  for (size_t i = 0; i < count; ++i) bytes[i] = static_cast<char>(i * 131 + i / 251);
  return bytes;
}

TEST(ReadFile, GivesTheWholeFile) {
  const TemporaryFolder folder;
  for (const size_t size : {size_t{0}, size_t{1}, size_t{4096}, size_t{100001}}) {
    const std::string bytes = some_bytes(size);
    write_file_atomically(folder / "f", bytes);
    EXPECT_EQ(read_file(folder / "f"), bytes);
  }
}

TEST(ReadFile, ReadsWhatHasNoSize) {
  EXPECT_THAT(read_file("/proc/self/status"), HasSubstr("Pid:"));
}

TEST(ReadFile, ErrorsNameThePathAndTheReason) {
  const TemporaryFolder folder;
  const std::string missing = message_of([&] { read_file(folder / "missing"); });
  EXPECT_THAT(missing, HasSubstr((folder / "missing").string()));
  EXPECT_THAT(missing, HasSubstr("No such file"));
  EXPECT_THAT(message_of([&] { read_file(folder.path()); }), HasSubstr("is a folder"));
}

TEST(MappedFile, ShowsTheBytesAndMoves) {
  const TemporaryFolder folder;
  const std::string bytes = some_bytes(70000);
  write_file_atomically(folder / "f", bytes);
  MappedFile first(folder / "f");
  EXPECT_EQ(text_of(first), bytes);
  MappedFile second(std::move(first));
  EXPECT_EQ(text_of(second), bytes);
  MappedFile third;
  third = std::move(second);
  EXPECT_EQ(text_of(third), bytes);
  EXPECT_EQ(third.path(), folder / "f");
}

TEST(MappedFile, AnEmptyFileIsAnEmptySpan) {
  const TemporaryFolder folder;
  write_file_atomically(folder / "f", "");
  EXPECT_TRUE(MappedFile(folder / "f").bytes().empty());
}

TEST(MappedFile, ErrorsNameThePath) {
  const TemporaryFolder folder;
  EXPECT_THAT(message_of([&] { MappedFile(folder / "missing"); }), HasSubstr("missing"));
  EXPECT_THAT(message_of([&] { MappedFile(folder.path()); }), HasSubstr("is a folder"));
}

TEST(FileWriter, WritesSmallAndLargePiecesInOrder) {
  const TemporaryFolder folder;
  FileWriter writer(folder / "f");
  std::string expected;
  for (const size_t size : {3u, 700000u, 600000u, 3000000u, 0u, 5u}) {
    const std::string piece = some_bytes(size);
    writer.write(piece);
    expected += piece;
    EXPECT_EQ(writer.size_bytes(), expected.size());
  }
  writer.finish();
  EXPECT_EQ(read_file(folder / "f"), expected);
}

TEST(FileWriter, WritesHeadersKnownLast) {
  const TemporaryFolder folder;
  FileWriter writer(folder / "f");
  writer.write("....body");
  writer.write_at(0, "head", 4);
  writer.write("tail");
  writer.finish();
  EXPECT_EQ(read_file(folder / "f"), "headbodytail");
}

TEST(FileWriter, LeavesNothingUnlessFinished) {
  const TemporaryFolder folder;
  {
    FileWriter writer(folder / "f");
    writer.write(some_bytes(3000000));
  }
  EXPECT_EQ(folder.entries(), 0);
}

TEST(FileWriter, CannotCreate) {
  const TemporaryFolder folder;
  const std::string message = message_of([&] { FileWriter writer(folder / "no/such/folder"); });
  EXPECT_THAT(message, HasSubstr("cannot create"));
  EXPECT_THAT(message, HasSubstr((folder / "no/such/folder").string()));
}

TEST(FileWriter, AFullDiskIsAnErrorWhereverItIsNoticed) {
  const Path full = "/dev/full";
  EXPECT_THAT(message_of([&] {
                FileWriter writer(full, FileWriter::Kind::kExisting);
                writer.write(some_bytes(3000000));
              }),
              HasSubstr("/dev/full: cannot write: No space left on device: the disk is full"));
  EXPECT_THAT(message_of([&] {
                FileWriter writer(full, FileWriter::Kind::kExisting);
                writer.write("short, noticed when it is flushed");
                writer.finish();
              }),
              HasSubstr("the disk is full"));
  EXPECT_TRUE(std::filesystem::is_character_file(full));
}

TEST(FileWriter, NeitherTruncatesNorRemovesWhatItDidNotCreate) {
  const TemporaryFolder folder;
  write_file_atomically(folder / "f", "mine");
  EXPECT_THAT(message_of([&] { FileWriter writer(folder / "f"); }), HasSubstr("File exists"));
  EXPECT_EQ(read_file(folder / "f"), "mine");
  {
    FileWriter writer(folder / "g");
    writer.write("a part");
    // Somebody else replaces the file in the meantime.
    std::filesystem::rename(folder / "f", folder / "g");
  }
  EXPECT_EQ(read_file(folder / "g"), "mine");
}

TEST(FileWriter, ATemporaryFileTakesAnotherNameIfItsOwnIsTaken) {
  const TemporaryFolder folder;
  write_file_atomically(folder / "f.partial", "mine");
  FileWriter writer(folder / "f.partial", FileWriter::Kind::kTemporary);
  writer.write("new");
  writer.finish();
  EXPECT_NE(writer.path(), folder / "f.partial");
  EXPECT_EQ(writer.path().extension(), ".partial");
  EXPECT_EQ(read_file(writer.path()), "new");
  EXPECT_EQ(read_file(folder / "f.partial"), "mine");
}

TEST(FileWriter, RefusesAHeaderKnownLastInAPipe) {
  FileWriter writer("/dev/null", FileWriter::Kind::kExisting);
  writer.write("....body");
  EXPECT_THAT(message_of([&] { writer.write_at(0, "head", 4); }),
              HasSubstr("needs an ordinary file"));
}

mode_t mode_of(const Path& path) {
  struct stat status {};
  EXPECT_EQ(::stat(path.c_str(), &status), 0);
  return status.st_mode & 0777;
}

TEST(FileWriter, TheUmaskAloneLimitsThePermissionsOfANewFile) {
  const TemporaryFolder folder;
  const mode_t before = ::umask(002);
  write_file_atomically(folder / "temporary", "x");
  FileWriter(folder / "new").finish();
  ::umask(before);
  EXPECT_EQ(mode_of(folder / "temporary"), 0664u);
  EXPECT_EQ(mode_of(folder / "new"), 0664u);
}

TEST(WriteFileAtomically, KeepsThePermissionsOfTheFile) {
  const TemporaryFolder folder;
  for (const mode_t mode : {0600u, 0640u, 0666u}) {
    write_file_atomically(folder / "f", "old");
    ASSERT_EQ(::chmod((folder / "f").c_str(), mode), 0);
    write_file_atomically(folder / "f", "new");
    EXPECT_EQ(mode_of(folder / "f"), mode);
  }
}

// A file system of 64 KiB, which only root can mount.
TEST(FileWriter, ARealDiskThatFillsUpKeepsNothing) {
  const TemporaryFolder folder;
  if (::mount("tmpfs", folder.path().c_str(), "tmpfs", 0, "size=64k") != 0) {
    GTEST_SKIP() << "mounting a small tmpfs is not allowed here";
  }
  write_file_atomically(folder / "f", "old");
  const std::string message =
      message_of([&] { write_file_atomically(folder / "f", some_bytes(200000)); });
  const std::string kept = read_file(folder / "f");
  const int64_t entries = folder.entries();
  ::umount(folder.path().c_str());
  EXPECT_THAT(message, HasSubstr("the disk is full"));
  EXPECT_EQ(kept, "old");
  EXPECT_EQ(entries, 1);
}

TEST(WriteFileAtomically, ReplacesAndLeavesOneFile) {
  const TemporaryFolder folder;
  write_file_atomically(folder / "f", "old and longer");
  write_file_atomically(folder / "f", "new");
  EXPECT_EQ(read_file(folder / "f"), "new");
  EXPECT_EQ(folder.entries(), 1);
}

TEST(WriteFileAtomically, WritesIntoWhatIsNoFile) {
  const TemporaryFolder folder;
  const Path pipe = folder / "pipe";
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  const int reader = ::open(pipe.c_str(), O_RDONLY | O_NONBLOCK);
  write_file_atomically(pipe, "through");
  std::array<char, 16> read{};
  EXPECT_EQ(::read(reader, read.data(), read.size()), 7);
  EXPECT_STREQ(read.data(), "through");
  ::close(reader);
  EXPECT_TRUE(std::filesystem::is_fifo(pipe));
  EXPECT_EQ(folder.entries(), 1);
}

TEST(WriteFileAtomically, WritesFilesInSharedMemory) {
  if (!std::filesystem::is_directory("/dev/shm")) GTEST_SKIP() << "no /dev/shm here";
  const Path path = fmt::format("/dev/shm/onebit-test-{}", ::getpid());
  write_file_atomically(path, "old");
  write_file_atomically(path, "new");
  EXPECT_EQ(read_file(path), "new");
  std::filesystem::remove(path);
}

TEST(WriteFileAtomically, WritesWhereALinkLeads) {
  const TemporaryFolder folder;
  write_file_atomically(folder / "f", "old");
  std::filesystem::create_symlink("f", folder / "link");
  write_file_atomically(folder / "link", "new");
  EXPECT_EQ(read_file(folder / "f"), "new");
  EXPECT_TRUE(std::filesystem::is_symlink(folder / "link"));
  std::filesystem::remove(folder / "f");
  write_file_atomically(folder / "link", "again");
  EXPECT_EQ(read_file(folder / "f"), "again");
}

TEST(WriteFileAtomically, AnOpenReaderKeepsTheOldContent) {
  const TemporaryFolder folder;
  write_file_atomically(folder / "f", "old");
  const MappedFile reader(folder / "f");
  write_file_atomically(folder / "f", "new");
  EXPECT_EQ(text_of(reader), "old");
}

TEST(WriteFileAtomically, RequiresTheNameOfAFileAndElseLeavesNothing) {
  const TemporaryFolder folder;
  std::filesystem::create_directory(folder / "f");
  EXPECT_THAT(message_of([&] { write_file_atomically(folder / "f", "x"); }),
              HasSubstr("it is a folder"));
  EXPECT_THAT(message_of([&] { write_file_atomically("", "x"); }),
              HasSubstr("not a valid output file name"));
  EXPECT_EQ(folder.entries(), 1);
}

TEST(RenameDurably, MovesFoldersAndNamesBothPaths) {
  const TemporaryFolder folder;
  std::filesystem::create_directory(folder / "a");
  write_file_atomically(folder / "a" / "f", "x");
  rename_durably(folder / "a", folder / "b");
  EXPECT_EQ(read_file(folder / "b" / "f"), "x");
  const std::string message = message_of([&] { rename_durably(folder / "a", folder / "c"); });
  EXPECT_THAT(message, HasSubstr((folder / "a").string()));
  EXPECT_THAT(message, HasSubstr((folder / "c").string()));
}

TEST(SyncFolder, ErrorsNameTheFolder) {
  const TemporaryFolder folder;
  sync_folder(folder.path());
  EXPECT_THAT(message_of([&] { sync_folder(folder / "missing"); }), HasSubstr("missing"));
}

}  // namespace
}  // namespace onebit
