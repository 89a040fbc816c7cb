#include "onebit/program/cluster/link_client.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/resource.h>
#include <sys/socket.h>

#include <array>
#include <chrono>
#include <thread>

#include "onebit/ground/base/clock.h"
#include "onebit/ground/base/error.h"
#include "onebit/ground/base/socket.h"
#include "onebit/program/cluster/link_server.h"
#include "tests/base/message_of.h"

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

double processor_seconds() {
  rusage used{};
  ::getrusage(RUSAGE_SELF, &used);
  const auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + 1e-6 * static_cast<double>(time.tv_usec);
  };
  return seconds(used.ru_utime) + seconds(used.ru_stime);
}

bool connects(const Socket& socket, int port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<uint16_t>(port));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  return ::connect(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0;
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
  // Without the other's answer, the first would be waited for longer than ctest gives the test.
  const auto trials = try_links(
      std::vector<LinkTarget>{{.group = 0, .address = "192.0.2.1", .port = 1024}, target(server)},
      3600);
  EXPECT_FALSE(trials[0].reached);
  EXPECT_TRUE(trials[1].reached);
}

// The kernel has accepted the connection for a server that gets no processor for a while.
TEST(LinkClient, ABusyServerIsAwaited) {
  const Socket busy(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  ASSERT_EQ(::listen(busy.get(), 1), 0);
  sockaddr_in address{};
  socklen_t length = sizeof address;
  ASSERT_EQ(::getsockname(busy.get(), reinterpret_cast<sockaddr*>(&address), &length), 0);
  const LinkTarget there = {.group = 0,
                            .address = "127.0.0.1",
                            .port = ntohs(address.sin_port),
                            .token = "0123456789abcdef"};
  std::jthread server([&] {
    std::this_thread::sleep_for(std::chrono::seconds(1));
    const Socket line(::accept(busy.get(), nullptr, nullptr));
    ::send(line.get(), there.token.data(), there.token.size(), MSG_NOSIGNAL);
  });
  const auto trials = try_links(std::vector<LinkTarget>{there}, 0.5);
  EXPECT_TRUE(trials[0].reached) << trials[0].failure;
}

TEST(LinkClient, MeasuresALink) {
  const LinkServer server(kAny);
  const Stopwatch running;
  const LinkSpeed speed = measure_link(target(server), 0.02);
  const double seconds = running.seconds();
  // Half of twenty round trips took at least the median, all within the time of the call.
  EXPECT_GT(speed.seconds, 0);
  EXPECT_LE(10 * 2 * speed.seconds, seconds);
  // So did a message of 64 KiB or more.
  EXPECT_GE(speed.bytes_per_second * seconds, 65536);
  LinkTarget gone = target(server);
  gone.port = 1;
  EXPECT_THROW(measure_link(gone, 0.02), Error);
}

// With --interface, a server is not to be reached over other networks.
TEST(LinkServer, ListensOnTheGivenAddressesOnly) {
  const LinkServer server(kAny, {"127.0.0.1", "127.0.0.2"});
  ASSERT_EQ(server.ports().size(), 2u);
  LinkTarget second = target(server, 1, 1), third = target(server, 2);
  second.address = "127.0.0.2";
  third.address = "127.0.0.3";
  const auto trials = try_links(std::vector<LinkTarget>{target(server), second, third}, 5);
  EXPECT_TRUE(trials[0].reached) << trials[0].failure;
  EXPECT_TRUE(trials[1].reached) << trials[1].failure;
  EXPECT_THAT(trials[2].failure, HasSubstr("refused"));
  EXPECT_THAT(message_of([] { const LinkServer wrong(kAny, {"::1"}); }), HasSubstr("IPv4"));
}

// Strangers that hold all connections, or files of this process that are all in use: the server
// waits without work, and serves the next one as soon as it can.
TEST(LinkServer, ConnectionsBeyondTheLimitOfFilesWait) {
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &before), 0);
  const LinkServer server(kAny);
  std::vector<Socket> strangers;
  for (int i = 0; i < 30; ++i) {
    Socket& one = strangers.emplace_back(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    ASSERT_TRUE(one.is_open());
  }
  const Socket last(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  rlimit small = before;
  small.rlim_cur = static_cast<rlim_t>(last.get()) + 11;  // ten connections are accepted
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &small), 0);
  const double before_cpu = processor_seconds();
  for (const Socket& one : strangers) EXPECT_TRUE(connects(one, server.ports()[0]));
  ::poll(nullptr, 0, 1000);
  // A server that tries again at once would use all of this second.
  EXPECT_LT(processor_seconds() - before_cpu, 0.5);
  EXPECT_TRUE(connects(last, server.ports()[0]));
  strangers.clear();
  std::array<char, kTokenBytes> token{};
  EXPECT_EQ(::recv(last.get(), token.data(), token.size(), MSG_WAITALL), ssize_t{kTokenBytes});
  ::setrlimit(RLIMIT_NOFILE, &before);
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
