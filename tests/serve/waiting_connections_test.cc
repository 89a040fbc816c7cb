#include "onebit/program/serve/waiting_connections.h"

#include <gtest/gtest.h>
#include <sys/socket.h>

#include <array>
#include <atomic>
#include <string_view>
#include <thread>
#include <vector>

namespace onebit::serve {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds kLong{60'000}, kShort{20}, kNow{0};
constexpr std::string_view kPart = "POST /a";
constexpr size_t kMuch = size_t{1} << 20;

class WaitingConnectionsTest : public testing::Test {
 protected:
  // Adds a connection and returns the client's end.
  Socket add(WaitingConnections& waiting) {
    std::array<int, 2> ends{};
    EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()), 0);
    waiting.add(std::make_unique<HttpConnection>(Socket(ends[0]), limits_));
    return Socket(ends[1]);
  }
  // One that has received the part kPart of a request.
  Socket add_begun(WaitingConnections& waiting) {
    std::array<int, 2> ends{};
    EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()), 0);
    Socket client(ends[1]);
    auto connection = std::make_unique<HttpConnection>(Socket(ends[0]), limits_);
    EXPECT_EQ(::send(client.get(), kPart.data(), kPart.size(), 0), std::ssize(kPart));
    EXPECT_EQ(connection->look(), HttpConnection::Arrival::kBytes);
    EXPECT_FALSE(connection->take_request());
    EXPECT_EQ(connection->begun_bytes(), kPart.size());
    waiting.add(std::move(connection));
    return client;
  }
  static void send(const Socket& client) { ASSERT_EQ(::send(client.get(), "GET", 3, 0), 3); }

  ConnectionLimits limits_;
};

TEST_F(WaitingConnectionsTest, GivesThoseThatSendSomethingOnce) {
  WaitingConnections waiting(kLong, kMuch);
  const Socket quiet = add(waiting), sends = add(waiting);
  EXPECT_FALSE(waiting.take(kShort));
  send(sends);
  std::optional<WaitingConnections::Taken> taken = waiting.take(kLong);
  ASSERT_TRUE(taken);
  EXPECT_FALSE(taken->shall_end);
  EXPECT_FALSE(waiting.take(kShort));
  // What it has not read yet is there again.
  waiting.add(std::move(taken->connection));
  taken = waiting.take(kLong);
  ASSERT_TRUE(taken);
  EXPECT_EQ(taken->connection->look(), HttpConnection::Arrival::kBytes);
  EXPECT_FALSE(taken->connection->take_request());
  EXPECT_TRUE(taken->connection->is_begun());
}

TEST_F(WaitingConnectionsTest, GivesThoseThatAreClosed) {
  WaitingConnections waiting(kLong, kMuch);
  Socket client = add(waiting);
  client.close();
  const std::optional<WaitingConnections::Taken> taken = waiting.take(kLong);
  ASSERT_TRUE(taken);
  EXPECT_FALSE(taken->shall_end);
  EXPECT_EQ(taken->connection->look(), HttpConnection::Arrival::kClosed);
}

TEST_F(WaitingConnectionsTest, LateOnesShallEnd) {
  WaitingConnections waiting(milliseconds(1), kMuch);
  const Socket client = add(waiting);
  std::this_thread::sleep_for(milliseconds(5));
  EXPECT_FALSE(waiting.take(milliseconds(0)));
  waiting.end_late();
  const std::optional<WaitingConnections::Taken> taken = waiting.take(kLong);
  ASSERT_TRUE(taken);
  EXPECT_TRUE(taken->shall_end);
  EXPECT_EQ(taken->connection->look(), HttpConnection::Arrival::kNothing);
}

TEST_F(WaitingConnectionsTest, TheOldestShallEnd) {
  WaitingConnections waiting(kLong, kMuch);
  std::vector<Socket> clients;
  for (int i = 0; i < 4; ++i) clients.push_back(add(waiting));
  waiting.end_late();
  EXPECT_FALSE(waiting.take(milliseconds(0)));
  waiting.end_oldest(2, kLong, kNow);
  EXPECT_FALSE(waiting.take(milliseconds(0)));
  waiting.end_oldest(2, kNow, kLong);
  waiting.end_oldest(2, kNow, kLong);  // they are on their way
  for (int i = 0; i < 2; ++i) {
    const std::optional<WaitingConnections::Taken> taken = waiting.take(kLong);
    ASSERT_TRUE(taken);
    EXPECT_TRUE(taken->shall_end);
  }
  EXPECT_FALSE(waiting.take(kShort));
  // The first two have gone, the others have not.
  for (size_t i = 0; i < 4; ++i) {
    char byte = 0;
    EXPECT_EQ(::recv(clients[i].get(), &byte, 1, MSG_DONTWAIT), i < 2 ? 0 : -1) << i;
  }
}

// Its bytes are seen by whoever takes it, and it is given out once.
TEST_F(WaitingConnectionsTest, OneThatShallEndMayHaveSentSomething) {
  WaitingConnections waiting(kLong, kMuch);
  const Socket client = add(waiting);
  send(client);
  waiting.end_oldest(1, kNow, kLong);
  const std::optional<WaitingConnections::Taken> taken = waiting.take(kLong);
  ASSERT_TRUE(taken);
  EXPECT_TRUE(taken->shall_end);
  EXPECT_EQ(taken->connection->look(), HttpConnection::Arrival::kBytes);
  EXPECT_FALSE(waiting.take(kShort));
}

TEST_F(WaitingConnectionsTest, PartsOfRequestsHaveTheirOwnLimits) {
  limits_.silence = milliseconds(1);
  WaitingConnections waiting(kLong, kMuch);
  const Socket idle = add(waiting), begun = add_begun(waiting);
  std::this_thread::sleep_for(milliseconds(5));
  waiting.shorten(kLong);
  waiting.end_late();
  const std::optional<WaitingConnections::Taken> taken = waiting.take(kLong);
  ASSERT_TRUE(taken);
  EXPECT_TRUE(taken->shall_end);
  EXPECT_TRUE(taken->connection->is_begun());
  EXPECT_FALSE(waiting.take(kShort));
}

TEST_F(WaitingConnectionsTest, PartsOfRequestsMakeRoomLast) {
  WaitingConnections waiting(kLong, kMuch);
  const Socket begun = add_begun(waiting), idle = add(waiting);
  waiting.end_oldest(1, kNow, kNow);
  std::optional<WaitingConnections::Taken> taken = waiting.take(kLong);
  ASSERT_TRUE(taken);
  EXPECT_FALSE(taken->connection->is_begun());
  waiting.end_oldest(1, kNow, kLong);
  EXPECT_FALSE(waiting.take(kNow));
  waiting.end_oldest(1, kNow, kNow);
  taken = waiting.take(kLong);
  ASSERT_TRUE(taken);
  EXPECT_TRUE(taken->connection->is_begun());
}

TEST_F(WaitingConnectionsTest, PartsOfRequestsHoldSoMuch) {
  WaitingConnections waiting(kLong, 3 * kPart.size());
  std::vector<Socket> clients;
  for (int i = 0; i < 3; ++i) clients.push_back(add_begun(waiting));
  EXPECT_FALSE(waiting.holds_too_much());
  waiting.end_late();
  EXPECT_FALSE(waiting.take(kNow));
  clients.push_back(add_begun(waiting));
  EXPECT_TRUE(waiting.holds_too_much());
  waiting.end_late();
  EXPECT_FALSE(waiting.holds_too_much());
  EXPECT_TRUE(waiting.take(kLong)->shall_end);
  EXPECT_FALSE(waiting.take(kShort));
}

TEST_F(WaitingConnectionsTest, AShorterTimeBeginsWithTheCall) {
  WaitingConnections waiting(kLong, kMuch);
  const Socket client = add(waiting);
  std::this_thread::sleep_for(milliseconds(5));
  waiting.shorten(milliseconds(1));
  std::this_thread::sleep_for(milliseconds(5));
  waiting.end_late();
  EXPECT_TRUE(waiting.take(kLong));
}

TEST_F(WaitingConnectionsTest, ManyThreadsTakeEachOnce) {
  WaitingConnections waiting(kLong, kMuch);
  constexpr int kClients = 100;
  std::vector<Socket> clients;
  for (int i = 0; i < kClients; ++i) clients.push_back(add(waiting));
  std::atomic<int> taken = 0;
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] {
      while (waiting.take(kLong)) ++taken;
    });
  }
  for (const Socket& one : clients) send(one);
  while (taken < kClients) std::this_thread::sleep_for(milliseconds(1));
  waiting.end();
  for (std::thread& one : threads) one.join();
  EXPECT_EQ(taken, kClients);
}

}  // namespace
}  // namespace onebit::serve
