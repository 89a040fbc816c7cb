#include "onebit/cluster/link_client.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "onebit/base/clock.h"
#include "onebit/base/error.h"
#include "onebit/cluster/link_server.h"

namespace onebit::cluster {
namespace {

using testing::HasSubstr;

const std::vector<PortRange> kAny = {{.use = "values"}, {.use = "messages"}};

LinkTarget target(const LinkServer& server, int group = 0, size_t range = 0) {
  return {.group = group,
          .address = "127.0.0.1",
          .port = server.ports()[range],
          .token = server.token()};
}

TEST(LinkClient, ReachesEveryRangeOfAServer) {
  const LinkServer one(kAny), other(kAny);
  EXPECT_NE(one.token(), other.token());
  ASSERT_EQ(one.ports().size(), 2u);
  const std::vector<LinkTarget> targets = {target(one), target(one, 1, 1), target(other, 2)};
  for (const LinkTrial& trial : try_links(targets, 5)) {
    EXPECT_TRUE(trial.reached) << trial.failure;
  }
}

TEST(LinkClient, ReportsWhyATargetIsNotReached) {
  int closed = 0;
  {
    const LinkServer gone(kAny);
    closed = gone.ports()[0];
  }
  const LinkServer server(kAny);
  LinkTarget wrong = target(server, 1);
  wrong.token = "somebody else's.";
  const auto trials =
      try_links(std::vector<LinkTarget>{{.group = 0, .address = "127.0.0.1", .port = closed},
                                        wrong,
                                        // Reserved for documentation: no route, or no answer.
                                        {.group = 2, .address = "192.0.2.1", .port = 1024}},
                0.3);
  ASSERT_EQ(trials.size(), 3u);
  EXPECT_THAT(trials[0].failure, HasSubstr("refused"));
  EXPECT_EQ(trials[1].failure, "another program answers there");
  EXPECT_FALSE(trials[2].reached);
  EXPECT_NE(trials[2].failure, "");
}

TEST(LinkClient, OneAddressOfAGroupIsEnough) {
  const LinkServer server(kAny);
  const Stopwatch running;
  const auto trials = try_links(
      std::vector<LinkTarget>{{.group = 0, .address = "192.0.2.1", .port = 1024}, target(server)},
      20);
  EXPECT_FALSE(trials[0].reached);
  EXPECT_TRUE(trials[1].reached);
  EXPECT_LT(running.seconds(), 10);
}

TEST(LinkClient, MeasuresALink) {
  const LinkServer server(kAny);
  const LinkSpeed speed = measure_link(target(server), 0.02);
  EXPECT_GT(speed.seconds, 0);
  EXPECT_LT(speed.seconds, 0.1);
  EXPECT_GT(speed.bytes_per_second, 1e6);
  LinkTarget gone = target(server);
  gone.port = 1;
  EXPECT_THROW(measure_link(gone, 0.02), Error);
}

TEST(LinkServer, TakesTheNextFreePortOfARange) {
  const LinkServer first(std::vector<PortRange>{{.use = "values"}});
  const int taken = first.ports()[0];
  if (taken == 65535) GTEST_SKIP() << "the kernel gave the last port";
  const LinkServer next(std::vector<PortRange>{{.use = "values", .first = taken, .last = 65535}});
  EXPECT_GT(next.ports()[0], taken);
  try {
    const LinkServer none(std::vector<PortRange>{{.use = "values", .first = taken, .last = taken}});
    FAIL();
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("are taken"));
  }
}

}  // namespace
}  // namespace onebit::cluster
