#include "onebit/ground/base/machine.h"

#include "tests/base/open_files_test.h"

namespace onebit {
namespace {

using RaiseOpenFiles = OpenFilesTest;

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
