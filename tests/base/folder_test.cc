#include "onebit/ground/base/folder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "tests/base/message_of.h"
#include "tests/base/temporary_folder.h"

namespace onebit {
namespace {

using testing::AllOf;
using testing::HasSubstr;

namespace files = std::filesystem;

TEST(NearestFolder, IsTheFolderOrAParentThatIsThere) {
  const TemporaryFolder folder;
  EXPECT_EQ(nearest_folder(folder.path()), folder.path());
  EXPECT_EQ(nearest_folder(folder / "a/b/../c/"), folder.path());
  EXPECT_EQ(nearest_folder("no/such"), files::current_path());
  EXPECT_EQ(nearest_folder("/no-such-folder"), "/");
  files::create_directory_symlink("nowhere", folder / "link");
  EXPECT_EQ(nearest_folder(folder / "link/a"), folder / "link");
}

TEST(Writable, LeavesNothingBehind) {
  const TemporaryFolder folder;
  files::create_directory(folder / "there");
  require_writable(folder / "there");
  require_writable(folder / "not/there");
  EXPECT_EQ(folder.entries(), 1);
  EXPECT_TRUE(files::is_empty(folder / "there"));
}

TEST(Writable, ReportsWhereNoFileCanBeMade) {
  const TemporaryFolder folder;
  std::ofstream(folder / "file") << "content";
  files::create_directory_symlink("nowhere", folder / "link");
  for (const char* name : {"file", "link"}) {
    const Path inside = folder / name / "run";
    EXPECT_THAT(message_of([&] { require_writable(inside); }),
                AllOf(HasSubstr(inside.string() + ": cannot be created: "),
                      HasSubstr((folder / name).string() + " is not a folder")));
  }
  // No user can create files here.
  EXPECT_THAT(message_of([&] { require_writable("/proc/runs/mini"); }),
              HasSubstr("/proc/runs/mini: cannot be written to: cannot create a file in /proc: "));
}

}  // namespace
}  // namespace onebit
