#include "onebit/program/launch/host_link.h"

#include <gtest/gtest.h>
#include <poll.h>

#include <string>

#include "onebit/ground/base/clock.h"

namespace onebit::launch {
namespace {

// A watch that shows itself once, after `seconds`.
HostLink link_to(const std::string& seconds) {
  const std::string beat = line_of(WatchReply{.kind = WatchReply::Kind::kBeat});
  return HostLink(cluster::Agent{}, cluster::kThisMachine,
                  {"sh", "-c", "sleep " + seconds + "; echo '" + beat + "'; sleep 60"}, "/", 0);
}

// The launcher's own process was stopped for 100 seconds, in which the host sent a beat.
TEST(HostLink, AHostIsNotSilentWhileTheLauncherStandsStill) {
  HostLink link = link_to("0");
  EXPECT_EQ(link.silent_seconds(), 0);
  std::vector<pollfd> sources;
  link.add_sources(sources);
  ASSERT_GT(::poll(sources.data(), static_cast<nfds_t>(sources.size()), -1), 0);
  link.advance(100);
  EXPECT_EQ(link.silent_seconds(), 0);
  link.advance(103);
  EXPECT_EQ(link.silent_seconds(), 3);
}

// `ssh -vvv`: an agent whose standard error nobody reads would stand still, and its host seem gone.
TEST(HostLink, AnAgentThatWritesMuchIsHeard) {
  const std::string beat = line_of(WatchReply{.kind = WatchReply::Kind::kBeat});
  HostLink link(cluster::Agent{}, cluster::kThisMachine,
                {"sh", "-c",
                 "yes noise | head -c 5000 >&2; yes noise | head -c 300000 >&2; echo end >&2; "
                 "echo '" +
                     beat + "'; sleep 60"},
                "/", 0);
  const Stopwatch waited;
  double now = 1;
  for (; link.silent_seconds() > 0 || now == 1; ++now) {
    std::vector<pollfd> sources;
    link.add_sources(sources);
    ASSERT_GT(::poll(sources.data(), static_cast<nfds_t>(sources.size()), 10000), 0);
    link.advance(now);
    ASSERT_LT(waited.seconds(), 60);
  }
  EXPECT_EQ(link.complaint(), "end");
}

TEST(HostLink, IsReadOnlyWhenSomethingHasArrived) {
  HostLink link = link_to("0");
  std::vector<pollfd> sources;
  link.add_sources(sources);
  ASSERT_GT(::poll(sources.data(), static_cast<nfds_t>(sources.size()), 10000), 0);
  link.advance(100, false);
  EXPECT_EQ(link.silent_seconds(), 100);
  link.advance(100, true);
  EXPECT_EQ(link.silent_seconds(), 0);
}

TEST(HostLink, AHostThatShowsNothingIsSilent) {
  HostLink link = link_to("60");
  link.advance(12);
  EXPECT_EQ(link.silent_seconds(), 12);
}

}  // namespace
}  // namespace onebit::launch
