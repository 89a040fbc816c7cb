#include "onebit/ground/base/partial_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include <csignal>
#include <fstream>

#include "onebit/ground/base/error.h"
#include "onebit/ground/base/file.h"
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
  writer.finish("file");
  EXPECT_TRUE(files::exists(parent / "out/file"));
  EXPECT_EQ(parent.entries(), 1);
}

TEST(PartialFolder, ErrorsNameThePlaceThatWasAskedFor) {
  const TemporaryFolder parent;
  const PartialFolder writer(parent / "out", Existing::kRefuse);
  const Path path = writer.path() / "nowhere" / "f.partial";
  EXPECT_EQ(
      message_of([&] { write_file_atomically(path, ""); }),
      (parent / "out/nowhere/f.partial").string() + ": cannot create: No such file or directory");
}

TEST(PartialFolder, LeavesNothingWhenGivenUp) {
  TemporaryFolder parent;
  {
    PartialFolder writer(parent / "out", Existing::kRefuse);
    put(writer.path() / "file");
  }
  EXPECT_EQ(parent.entries(), 0);
}

// Ends a writer as kill -9 does.
void begin_and_be_killed(const Path& folder) {
  EXPECT_EXIT(
      {
        PartialFolder writer(folder, Existing::kRefuse);
        put(writer.path() / "old");
        ::raise(SIGKILL);
      },
      testing::KilledBySignal(SIGKILL), "");
}

TEST(PartialFolder, TakesAnEmptyFolderAndWhatAKilledOneLeft) {
  TemporaryFolder parent;
  files::create_directories(parent / "out");
  begin_and_be_killed(parent / "out");
  EXPECT_TRUE(files::exists(parent / "out.partial/old"));
  PartialFolder writer(parent / "out", Existing::kRefuse);
  writer.finish("file");
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
              HasSubstr("name a new folder in it"));
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
  writer.finish("file");
  EXPECT_FALSE(files::exists(parent / "out/old"));
  EXPECT_TRUE(files::exists(parent / "out/new"));
  EXPECT_EQ(parent.entries(), 1);
}

TEST(PartialFolder, NothingElseMayBeInAFolderThatIsReplaced) {
  TemporaryFolder parent;
  files::create_directories(parent / "out");
  for (const char* name : {"mine", "lock"}) put(parent / "out" / name);
  const std::vector<std::string> names = {"mine", "absent"};
  require_only(parent / "out", names);
  files::create_directories(parent / "out/run");
  EXPECT_THAT(message_of([&] { require_only(parent / "out", names); }),
              HasSubstr("out: contains run, which would be deleted"));
}

TEST(PartialFolder, LeavesAnotherWritersAlone) {
  TemporaryFolder parent;
  PartialFolder first(parent / "out", Existing::kRefuse);
  put(first.path() / "file");
  EXPECT_THAT(message_of([&] { PartialFolder second(parent / "out", Existing::kRefuse); }),
              HasSubstr("another process is writing"));
  first.finish("file");
  EXPECT_TRUE(files::exists(parent / "out/file"));
  EXPECT_FALSE(files::exists(parent / "out/lock"));
}

TEST(PartialFolder, LeavesAFolderOfTheSameNameAlone) {
  TemporaryFolder parent;
  files::create_directories(parent / "out.partial");
  put(parent / "out.partial/mine");
  const auto begin = [&] { PartialFolder writer(parent / "out", Existing::kRefuse); };
  EXPECT_THAT(message_of(begin),
              HasSubstr("out.partial: already exists and was not left by an interrupted run"));
  // Other programs lock folders, too.
  put(parent / "out.partial/lock");
  EXPECT_THAT(message_of(begin), HasSubstr("was not left by an interrupted run"));
  EXPECT_TRUE(files::exists(parent / "out.partial/mine"));
  // A lock with a content of its own may be all that there is.
  files::remove(parent / "out.partial/mine");
  std::ofstream(parent / "out.partial/lock") << "4711\n";
  EXPECT_THAT(message_of(begin), HasSubstr("was not left by an interrupted run"));
  EXPECT_TRUE(files::exists(parent / "out.partial/lock"));
  // A writer of onebit that was killed before its mark was complete.
  std::ofstream(parent / "out.partial/lock") << "onebit: an unf";
  EXPECT_EQ(message_of(begin), "(no error)");
}

TEST(PartialFolder, LeavesAReplacedFolderOfTheUserAlone) {
  TemporaryFolder parent;
  files::create_directories(parent / "out");
  files::create_directories(parent / "out.replaced");
  put(parent / "out.replaced/mine");
  PartialFolder writer(parent / "out", Existing::kReplace);
  put(writer.path() / "file");
  writer.finish("file");
  EXPECT_TRUE(files::exists(parent / "out/file"));
  EXPECT_TRUE(files::exists(parent / "out.replaced/mine"));
  EXPECT_EQ(parent.entries(), 2);
}

TEST(PartialFolder, IsWrittenWhereALinkLeads) {
  for (const bool is_there : {true, false}) {
    TemporaryFolder parent;
    files::create_directories(parent / "disk");
    if (is_there) files::create_directories(parent / "disk/out");
    files::create_symlink("disk/out", parent / "link");
    files::create_symlink("link", parent / "second");
    PartialFolder writer(parent / "second", Existing::kRefuse);
    EXPECT_EQ(writer.path().parent_path(), parent / "disk");
    put(writer.path() / "file");
    writer.finish("file");
    EXPECT_TRUE(files::is_symlink(parent / "second") && files::is_symlink(parent / "link"));
    EXPECT_TRUE(files::exists(parent / "disk/out/file"));
    EXPECT_EQ(parent.entries(), 3);
  }
}

TEST(PartialFolder, ReplacesTheTargetOfALink) {
  TemporaryFolder parent;
  files::create_directories(parent / "disk/out");
  put(parent / "disk/out/old");
  files::create_symlink("disk/out", parent / "link");
  PartialFolder writer(parent / "link", Existing::kReplace);
  put(writer.path() / "file");
  writer.finish("file");
  EXPECT_TRUE(files::is_symlink(parent / "link"));
  EXPECT_TRUE(files::exists(parent / "disk/out/file"));
  EXPECT_FALSE(files::exists(parent / "disk/out/old"));
}

TEST(PartialFolder, RefusesLinksInACircle) {
  TemporaryFolder parent;
  files::create_symlink("b", parent / "a");
  files::create_symlink("a", parent / "b");
  EXPECT_THAT(message_of([&] { PartialFolder writer(parent / "a", Existing::kRefuse); }),
              HasSubstr("links to itself"));
}

// A folder of another disk, or one that is mounted a second time. Only root can mount.
class MountedFolder {
 public:
  explicit MountedFolder(const Path& folder, bool of_same_disk = false) : folder_(folder) {
    files::create_directories(folder);
    const Path source = folder.string() + "-source";
    if (of_same_disk) files::create_directories(source);
    is_mounted = of_same_disk ? ::mount(source.c_str(), folder.c_str(), "", MS_BIND, nullptr) == 0
                              : ::mount("tmpfs", folder.c_str(), "tmpfs", 0, "size=64k") == 0;
  }
  ~MountedFolder() { ::umount2(folder_.c_str(), MNT_DETACH); }
  MountedFolder(const MountedFolder&) = delete;
  MountedFolder& operator=(const MountedFolder&) = delete;

  bool is_mounted = false;

 private:
  Path folder_;
};

TEST(PartialFolder, FillsAFolderThatIsAMountPoint) {
  for (const bool of_same_disk : {false, true}) {
    TemporaryFolder parent;
    const MountedFolder mounted(parent / "out", of_same_disk);
    if (!mounted.is_mounted) GTEST_SKIP() << "mounting is not allowed here";
    files::create_directories(parent / "out/lost+found");  // of a new disk
    PartialFolder writer(parent / "out/", Existing::kRefuse);
    EXPECT_EQ(writer.path(), parent / "out/.partial");
    put(writer.path() / "file");
    put(writer.path() / "other");
    files::create_directories(writer.path() / "sub/folder");
    writer.finish("file");
    EXPECT_TRUE(files::exists(parent / "out/file") && files::exists(parent / "out/other"));
    EXPECT_TRUE(files::exists(parent / "out/sub/folder"));
    EXPECT_TRUE(files::exists(parent / "out/lost+found"));
    EXPECT_FALSE(files::exists(parent / "out/.partial"));
    EXPECT_FALSE(files::exists(parent / "out/lock"));
  }
}

TEST(PartialFolder, ReplacesTheContentOfAMountPoint) {
  TemporaryFolder parent;
  const MountedFolder mounted(parent / "out");
  if (!mounted.is_mounted) GTEST_SKIP() << "mounting is not allowed here";
  put(parent / "out/file");
  put(parent / "out/old");
  EXPECT_THAT(message_of([&] { PartialFolder writer(parent / "out", Existing::kRefuse); }),
              HasSubstr("already exists"));
  { PartialFolder given_up(parent / "out", Existing::kReplace); }
  EXPECT_TRUE(files::exists(parent / "out/old"));
  PartialFolder writer(parent / "out", Existing::kReplace);
  put(writer.path() / "file");
  put(writer.path() / "new");
  writer.finish("file");
  EXPECT_TRUE(files::exists(parent / "out/file") && files::exists(parent / "out/new"));
  EXPECT_FALSE(files::exists(parent / "out/old"));
  EXPECT_FALSE(files::exists(parent / "out/.replaced"));
}

TEST(PartialFolder, AKilledWriterOfAMountPointIsFollowed) {
  TemporaryFolder parent;
  const MountedFolder mounted(parent / "out");
  if (!mounted.is_mounted) GTEST_SKIP() << "mounting is not allowed here";
  begin_and_be_killed(parent / "out");
  EXPECT_TRUE(files::exists(parent / "out/.partial/old"));
  EXPECT_TRUE(is_free_for_folder(parent / "out"));
  PartialFolder writer(parent / "out", Existing::kRefuse);
  put(writer.path() / "file");
  writer.finish("file");
  EXPECT_FALSE(files::exists(parent / "out/old") || files::exists(parent / "out/.partial"));
}

TEST(PartialFolder, KeepsWhatIsFinishedAndNamesIt) {
  TemporaryFolder parent;
  PartialFolder* writer = new PartialFolder(parent / "out", Existing::kRefuse);
  put(writer->path() / "file");
  files::create_directories(parent / "out");
  put(parent / "out/of-another");
  const std::string message = message_of([&] { writer->finish("file"); });
  delete writer;
  EXPECT_THAT(message, HasSubstr("everything was written"));
  EXPECT_THAT(message, HasSubstr("It is kept in " + (parent / "out.partial").string()));
  EXPECT_TRUE(files::exists(parent / "out.partial/file"));
  EXPECT_FALSE(files::exists(parent / "out.partial/lock"));
  EXPECT_TRUE(files::exists(parent / "out/of-another"));
}

TEST(PartialFolder, TakesThePermissionsOfTheFolderThatItReplaces) {
  TemporaryFolder parent;
  files::create_directories(parent / "out");
  files::permissions(parent / "out", files::perms(0750));
  PartialFolder writer(parent / "out", Existing::kRefuse);
  put(writer.path() / "file");
  writer.finish("file");
  EXPECT_EQ(files::status(parent / "out").permissions(), files::perms(0750));
}

// The members of the group could no longer read what was theirs.
TEST(PartialFolder, TakesTheGroupOfTheFolderThatItReplaces) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can give a folder to another group";
  constexpr gid_t kGroup = 4711;
  const TemporaryFolder parent;
  const Path out = parent / "out";
  files::create_directory(out);
  ASSERT_EQ(::chown(out.c_str(), 4712, kGroup), 0);
  ASSERT_EQ(::chmod(out.c_str(), 02750), 0);
  PartialFolder folder(out, Existing::kRefuse);
  write_file_atomically(folder.path() / "last", "");
  folder.finish("last");
  struct stat found {};
  ASSERT_EQ(::stat(out.c_str(), &found), 0);
  EXPECT_EQ(found.st_gid, kGroup);
  EXPECT_EQ(found.st_uid, 4712u);
  EXPECT_EQ(found.st_mode & 07777, 02750u);
  ASSERT_EQ(::stat((out / "last").c_str(), &found), 0);
  EXPECT_EQ(found.st_gid, kGroup);  // as in every folder with this bit
}

// As an ordinary user in a folder of root, where an empty folder belongs to the user.
TEST(PartialFolder, FillsAFolderWhoseParentIsNotWritable) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can become another user";
  TemporaryFolder parent;
  files::permissions(parent.path(), files::perms(0755));
  files::create_directories(parent / "mine");
  ASSERT_EQ(::chown((parent / "mine").c_str(), 65534, 65534), 0);
  EXPECT_EXIT(
      {
        if (::seteuid(65534) != 0) ::_exit(3);
        try {
          PartialFolder writer(parent / "mine", Existing::kRefuse);
          put(writer.path() / "file");
          writer.finish("file");
        } catch (const Error& error) {
          ::_exit(1);
        }
        const std::string absent =
            message_of([&] { PartialFolder writer(parent / "absent", Existing::kRefuse); });
        ::_exit(absent.find("absent: cannot be written to") == std::string::npos ? 2 : 0);
      },
      testing::ExitedWithCode(0), "");
  EXPECT_TRUE(files::exists(parent / "mine/file"));
  EXPECT_FALSE(files::exists(parent / "mine/.partial"));
}

}  // namespace
}  // namespace onebit
