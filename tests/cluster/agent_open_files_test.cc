#include "onebit/program/cluster/agent.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>

#include "tests/base/message_of.h"

namespace onebit::cluster {
namespace {

using testing::HasSubstr;

class OpenFilesTest : public testing::Test {
 protected:
  OpenFilesTest() { ::getrlimit(RLIMIT_NOFILE, &before_); }
  ~OpenFilesTest() override { ::setrlimit(RLIMIT_NOFILE, &before_); }

  static void limit_to(rlim_t soft) {
    rlimit limit{};
    ::getrlimit(RLIMIT_NOFILE, &limit);
    limit.rlim_cur = soft;
    ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &limit), 0);
  }
  static rlim_t soft() {
    rlimit limit{};
    ::getrlimit(RLIMIT_NOFILE, &limit);
    return limit.rlim_cur;
  }

  rlimit before_{};
};

TEST_F(OpenFilesTest, ALauncherOfManyHostsGetsItsPipes) {
  limit_to(64);
  raise_open_files_for(20);
  EXPECT_GE(soft(), 64u + 3 * 20);
}

TEST_F(OpenFilesTest, HostsThatNeedMoreAreRefusedWithTheCommandThatHelps) {
  if (before_.rlim_max == RLIM_INFINITY) GTEST_SKIP() << "the system sets no limit";
  const auto hosts = static_cast<int64_t>(before_.rlim_max);
  const std::string said = message_of([&] { raise_open_files_for(hosts); });
  EXPECT_THAT(said, HasSubstr("open files, but this user may open only " + std::to_string(hosts)));
  EXPECT_THAT(said, HasSubstr("`ulimit -n "));
}

}  // namespace
}  // namespace onebit::cluster
