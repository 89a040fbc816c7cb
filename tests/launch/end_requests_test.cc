#include "onebit/program/launch/end_requests.h"

#include <gtest/gtest.h>

namespace onebit::launch {
namespace {

TEST(EndRequests, CountsWhoInsists) {
  EndRequests requests;
  EXPECT_FALSE(requests.any());
  ::raise(SIGTERM);
  EXPECT_EQ(requests.count(), 1);
  ::raise(SIGTERM);
  EXPECT_EQ(requests.count(), 2);
}

// The kernel and the shell send several when a terminal closes, the last ones perhaps when the run
// has ended already.
TEST(EndRequests, HangupsCountOnceAndDoNotEndTheProcessLater) {
  const auto before = ::signal(SIGHUP, SIG_DFL);
  {
    EndRequests requests;
    ::raise(SIGHUP);
    EXPECT_EQ(requests.count(), 1);
    ::raise(SIGHUP);
    EXPECT_EQ(requests.count(), 1);
    ::raise(SIGHUP);  // still waits when `requests` ends
  }
  ::raise(SIGHUP);
  EXPECT_EQ(::signal(SIGHUP, before), SIG_IGN);
}

}  // namespace
}  // namespace onebit::launch
