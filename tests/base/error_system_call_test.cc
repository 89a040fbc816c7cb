#include "onebit/ground/base/error.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "tests/base/message_of.h"

namespace onebit {
namespace {

// Formatting a message may change errno like this.
std::string text_that_changes_errno() {
  errno = ENOENT;
  return "file";
}

TEST(RequireCall, GivesTheReasonOfTheCallWhateverItsArgumentsDo) {
  EXPECT_EQ(
      message_of([] { require_call(::close(-1), "{}: cannot close", text_that_changes_errno()); }),
      "file: cannot close: Bad file descriptor");
  EXPECT_EQ(message_of([] {
              require_call(::open("/proc/self", O_WRONLY) >= 0, "{}", text_that_changes_errno());
            }),
            "file: Is a directory");
}

TEST(RequireCall, AcceptsWhatHasNotFailed) {
  errno = EPERM;
  require_call(0, "a call");
  require_call(ssize_t{5}, "a call");
  require_call(true, "a call");
}

TEST(ReasonOf, SaysWhatHelpsWhereTheSystemDoesNot) {
  EXPECT_EQ(reason_of(ENOENT), "No such file or directory");
  EXPECT_NE(reason_of(ENOSPC).find("No space left on device: the disk is full; free space"),
            std::string::npos);
  EXPECT_NE(reason_of(EDQUOT).find("free space"), std::string::npos);
  EXPECT_NE(reason_of(EMFILE).find("ulimit -n"), std::string::npos);
}

}  // namespace
}  // namespace onebit
