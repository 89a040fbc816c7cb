#include "onebit/program/cluster/agent.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/base/message_of.h"
#include "tests/base/open_files_test.h"

namespace onebit::cluster {
namespace {

using testing::HasSubstr;

using AgentOpenFiles = OpenFilesTest;

TEST_F(AgentOpenFiles, ALauncherOfManyHostsGetsItsPipes) {
  limit_to(64);
  raise_open_files_for(20);
  EXPECT_GE(soft(), 64u + 3 * 20);
}

TEST_F(AgentOpenFiles, HostsThatNeedMoreAreRefusedWithTheCommandThatHelps) {
  if (before_.rlim_max == RLIM_INFINITY) GTEST_SKIP() << "the system sets no limit";
  const auto hosts = static_cast<int64_t>(before_.rlim_max);
  const std::string said = message_of([&] { raise_open_files_for(hosts); });
  EXPECT_THAT(said, HasSubstr("open files, but this user may open only " + std::to_string(hosts)));
  EXPECT_THAT(said, HasSubstr("`ulimit -n "));
}

}  // namespace
}  // namespace onebit::cluster
