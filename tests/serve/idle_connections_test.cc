#include "onebit/program/serve/idle_connections.h"

#include <gtest/gtest.h>
#include <sys/socket.h>

#include <array>
#include <atomic>
#include <thread>
#include <vector>

namespace onebit::serve {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds kLong{60'000}, kShort{20};

class IdleConnectionsTest : public testing::Test {
 protected:
  // Adds a connection and returns the client's end.
  Socket add(IdleConnections& idle) {
    std::array<int, 2> ends{};
    EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()), 0);
    idle.add(std::make_unique<HttpConnection>(Socket(ends[0]), limits_));
    return Socket(ends[1]);
  }
  static void send(const Socket& client) { ASSERT_EQ(::send(client.get(), "GET", 3, 0), 3); }

  ConnectionLimits limits_;
};

TEST_F(IdleConnectionsTest, GivesThoseThatSendSomethingOnce) {
  IdleConnections idle(kLong);
  const Socket quiet = add(idle), sends = add(idle);
  EXPECT_FALSE(idle.take(kShort));
  send(sends);
  std::optional<IdleConnections::Taken> taken = idle.take(kLong);
  ASSERT_TRUE(taken);
  EXPECT_FALSE(taken->shall_end);
  EXPECT_FALSE(idle.take(kShort));
  // What it has not read yet is there again.
  idle.add(std::move(taken->connection));
  taken = idle.take(kLong);
  ASSERT_TRUE(taken);
  EXPECT_EQ(taken->connection->look(), HttpConnection::Arrival::kBytes);
  EXPECT_TRUE(taken->connection->is_begun());
}

TEST_F(IdleConnectionsTest, GivesThoseThatAreClosed) {
  IdleConnections idle(kLong);
  Socket client = add(idle);
  client.close();
  const std::optional<IdleConnections::Taken> taken = idle.take(kLong);
  ASSERT_TRUE(taken);
  EXPECT_FALSE(taken->shall_end);
  EXPECT_EQ(taken->connection->look(), HttpConnection::Arrival::kClosed);
}

TEST_F(IdleConnectionsTest, LateOnesShallEnd) {
  IdleConnections idle(milliseconds(1));
  const Socket client = add(idle);
  std::this_thread::sleep_for(milliseconds(5));
  EXPECT_FALSE(idle.take(milliseconds(0)));
  idle.end_late();
  const std::optional<IdleConnections::Taken> taken = idle.take(kLong);
  ASSERT_TRUE(taken);
  EXPECT_TRUE(taken->shall_end);
  EXPECT_EQ(taken->connection->look(), HttpConnection::Arrival::kNothing);
}

TEST_F(IdleConnectionsTest, TheOldestShallEnd) {
  IdleConnections idle(kLong);
  std::vector<Socket> clients;
  for (int i = 0; i < 4; ++i) clients.push_back(add(idle));
  idle.end_late();
  EXPECT_FALSE(idle.take(milliseconds(0)));
  idle.end_oldest(2, kLong);
  EXPECT_FALSE(idle.take(milliseconds(0)));
  idle.end_oldest(2, milliseconds(0));
  idle.end_oldest(2, milliseconds(0));  // they are on their way
  for (int i = 0; i < 2; ++i) {
    const std::optional<IdleConnections::Taken> taken = idle.take(kLong);
    ASSERT_TRUE(taken);
    EXPECT_TRUE(taken->shall_end);
  }
  EXPECT_FALSE(idle.take(kShort));
  // The first two have gone, the others have not.
  for (size_t i = 0; i < 4; ++i) {
    char byte = 0;
    EXPECT_EQ(::recv(clients[i].get(), &byte, 1, MSG_DONTWAIT), i < 2 ? 0 : -1) << i;
  }
}

// Its bytes are seen by whoever takes it, and it is given out once.
TEST_F(IdleConnectionsTest, OneThatShallEndMayHaveSentSomething) {
  IdleConnections idle(kLong);
  const Socket client = add(idle);
  send(client);
  idle.end_oldest(1, milliseconds(0));
  const std::optional<IdleConnections::Taken> taken = idle.take(kLong);
  ASSERT_TRUE(taken);
  EXPECT_TRUE(taken->shall_end);
  EXPECT_EQ(taken->connection->look(), HttpConnection::Arrival::kBytes);
  EXPECT_FALSE(idle.take(kShort));
}

TEST_F(IdleConnectionsTest, AShorterTimeBeginsWithTheCall) {
  IdleConnections idle(kLong);
  const Socket client = add(idle);
  std::this_thread::sleep_for(milliseconds(5));
  idle.shorten(milliseconds(1));
  std::this_thread::sleep_for(milliseconds(5));
  idle.end_late();
  EXPECT_TRUE(idle.take(kLong));
}

TEST_F(IdleConnectionsTest, ManyThreadsTakeEachOnce) {
  IdleConnections idle(kLong);
  constexpr int kClients = 100;
  std::vector<Socket> clients;
  for (int i = 0; i < kClients; ++i) clients.push_back(add(idle));
  std::atomic<int> taken = 0;
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] {
      while (idle.take(kLong)) ++taken;
    });
  }
  for (const Socket& one : clients) send(one);
  while (taken < kClients) std::this_thread::sleep_for(milliseconds(1));
  idle.end();
  for (std::thread& one : threads) one.join();
  EXPECT_EQ(taken, kClients);
}

}  // namespace
}  // namespace onebit::serve
