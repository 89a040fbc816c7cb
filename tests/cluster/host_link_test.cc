#include "onebit/cluster/host_link.h"

#include <gtest/gtest.h>

#include <chrono>
#include <string>
#include <thread>

namespace onebit::cluster {
namespace {

// A watch that shows itself once, after `seconds`.
HostLink link_to(const std::string& seconds) {
  const std::string beat = line_of(WatchReply{.kind = WatchReply::Kind::kBeat});
  return HostLink(Agent{}, kThisMachine,
                  {"sh", "-c", "sleep " + seconds + "; echo '" + beat + "'; sleep 60"}, "/", 0);
}

// The launcher's own process was stopped for 100 seconds, in which the host sent a beat.
TEST(HostLink, AHostIsNotSilentWhileTheLauncherStandsStill) {
  HostLink link = link_to("0");
  std::this_thread::sleep_for(std::chrono::milliseconds(500));
  EXPECT_EQ(link.silent_seconds(), 0);
  link.advance(100);
  EXPECT_EQ(link.silent_seconds(), 0);
  link.advance(103);
  EXPECT_EQ(link.silent_seconds(), 3);
}

TEST(HostLink, AHostThatShowsNothingIsSilent) {
  HostLink link = link_to("60");
  link.advance(12);
  EXPECT_EQ(link.silent_seconds(), 12);
}

}  // namespace
}  // namespace onebit::cluster
