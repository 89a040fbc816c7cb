#include "onebit/ground/base/partial_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/base/message_of.h"
#include "tests/base/temporary_folder.h"

namespace onebit {
namespace {

namespace files = std::filesystem;

TEST(WhereItLeads, FollowsEveryLinkAlsoToNothing) {
  const TemporaryFolder folder;
  EXPECT_EQ(where_it_leads(folder / "absent"), folder / "absent");
  files::create_symlink("absent/", folder / "dangling");
  files::create_symlink("dangling", folder / "second");
  files::create_symlink(folder / "second", folder / "absolute");
  EXPECT_EQ(where_it_leads(folder / "absolute"), folder / "absent");
  files::create_symlink("circle", folder / "circle");
  EXPECT_THAT(message_of([&] { where_it_leads(folder / "circle"); }),
              testing::HasSubstr("links to itself"));
}

TEST(IsMountPoint, OfTheSystemButNotOfAnOrdinaryFolder) {
  const TemporaryFolder folder;
  EXPECT_TRUE(is_mount_point("/proc"));
  EXPECT_FALSE(is_mount_point(folder.path()));
  EXPECT_FALSE(is_mount_point(folder / "absent"));
}

TEST(CanBeReplaced, WhereNamesCanBeChanged) {
  const TemporaryFolder folder;
  EXPECT_TRUE(can_be_replaced(folder / "absent"));
  EXPECT_FALSE(can_be_replaced("/proc"));
  if (::geteuid() != 0) GTEST_SKIP() << "only root can become another user";
  files::create_directories(folder / "shared/of-root");
  files::create_directories(folder / "shared/mine");
  ASSERT_EQ(::chown((folder / "shared/mine").c_str(), 65534, 65534), 0);
  ASSERT_EQ(::chmod(folder.path().c_str(), 0755), 0);
  const auto replaceable_by_user = [&](const char* name) {
    EXPECT_EQ(::seteuid(65534), 0);
    const bool can = can_be_replaced(folder / "shared" / name);
    EXPECT_EQ(::seteuid(0), 0);
    return can;
  };
  EXPECT_FALSE(replaceable_by_user("mine"));
  ASSERT_EQ(::chmod((folder / "shared").c_str(), 0777), 0);
  EXPECT_TRUE(replaceable_by_user("of-root"));
  ASSERT_EQ(::chmod((folder / "shared").c_str(), 01777), 0);  // as /tmp
  EXPECT_FALSE(replaceable_by_user("of-root"));
  EXPECT_TRUE(replaceable_by_user("mine"));
}

TEST(RewriteFile, KeepsTheFileAndReplacesItsContent) {
  const TemporaryFolder folder;
  write_file_atomically(folder / "to", "old and longer");
  write_file_atomically(folder / "from", "new");
  files::create_hard_link(folder / "to", folder / "same");
  rewrite_file(folder / "to", folder / "from");
  EXPECT_EQ(read_file(folder / "same"), "new");
}

}  // namespace
}  // namespace onebit
