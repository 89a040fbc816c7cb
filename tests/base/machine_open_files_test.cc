#include "onebit/ground/base/machine.h"

#include <gtest/gtest.h>
#include <sys/resource.h>

namespace onebit {
namespace {

class RaiseOpenFiles : public testing::Test {
 protected:
  RaiseOpenFiles() { ::getrlimit(RLIMIT_NOFILE, &before_); }
  ~RaiseOpenFiles() override { ::setrlimit(RLIMIT_NOFILE, &before_); }

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

TEST_F(RaiseOpenFiles, TheLimitIsRaisedAsFarAsWanted) {
  limit_to(100);
  EXPECT_EQ(raise_open_files(200), 200);
  EXPECT_EQ(soft(), 200u);
  EXPECT_EQ(raise_open_files(50), 200);
  EXPECT_EQ(soft(), 200u);
}

TEST_F(RaiseOpenFiles, ItIsNotRaisedAboveWhatTheSystemAllows) {
  if (before_.rlim_max == RLIM_INFINITY) GTEST_SKIP() << "the system sets no limit";
  limit_to(100);
  EXPECT_EQ(raise_open_files(static_cast<int64_t>(before_.rlim_max) + 1),
            static_cast<int64_t>(before_.rlim_max));
}

}  // namespace
}  // namespace onebit
