#include "onebit/ground/base/folder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include "tests/base/message_of.h"
#include "tests/base/temporary_folder.h"

namespace onebit {
namespace {

TEST(FolderLock, OneAtATime) {
  const TemporaryFolder folder;
  {
    const FolderLock held(folder.path());
    EXPECT_THAT(message_of([&] { FolderLock(folder.path()); }),
                testing::HasSubstr("another process is writing to this folder"));
  }
  EXPECT_EQ(message_of([&] { FolderLock(folder.path()); }), "(no error)");
}

TEST(FolderLock, IsSeenWithoutBeingTaken) {
  const TemporaryFolder folder;
  const auto look = [&] { return message_of([&] { refuse_locked(folder.path()); }); };
  EXPECT_EQ(look(), "(no error)");
  EXPECT_FALSE(std::filesystem::exists(folder / kLockName));
  {
    const FolderLock held(folder.path());
    EXPECT_THAT(look(), testing::HasSubstr("another process is writing to this folder"));
  }
  EXPECT_EQ(look(), "(no error)");
}

// Nobody writes into the pipe: opening it would wait for ever.
TEST(FolderLock, APipeIsNotHeld) {
  const TemporaryFolder folder;
  ASSERT_EQ(::mkfifo((folder / kLockName).c_str(), 0600), 0);
  EXPECT_EQ(message_of([&] { refuse_locked(folder.path()); }), "(no error)");
}

TEST(FolderLock, WithoutTheFolder) {
  const TemporaryFolder folder;
  EXPECT_THAT(message_of([&] { FolderLock(folder.path() / "absent"); }),
              testing::HasSubstr("cannot create"));
}

}  // namespace
}  // namespace onebit
