// Many connections, and more clients than there is room for.
#include "onebit/program/serve/http_server.h"

#include <gmock/gmock.h>

#include "tests/serve/running_server.h"

namespace onebit::serve {
namespace {

using std::chrono::milliseconds;

TEST_F(HttpServerTest, IdleConnectionsNeedNoThread) {
  options_.max_requests = 2;
  start();
  std::vector<HttpClient> idle;
  for (int i = 0; i < 300; ++i) {
    idle.push_back(client());
    if (i % 2 != 0) continue;
    EXPECT_EQ(idle.back().ask(get_text("/a")).status, 200);
  }
  // None of them has to end for a new client, and all of them may ask again.
  EXPECT_EQ(client().ask(get_text("/b")).body, "/b ");
  for (HttpClient& one : idle) EXPECT_EQ(one.ask(get_text("/c")).body, "/c ");
}

TEST_F(HttpServerTest, TheLongestIdleConnectionsMakeRoom) {
  options_.max_connections = 100;
  start();
  std::vector<HttpClient> clients;
  for (int i = 0; i < 300; ++i) clients.push_back(client());
  EXPECT_EQ(clients.back().ask(get_text("/a")).body, "/a ");
  EXPECT_LE(server_->connections(), 100);
  // Two make room at once.
  for (size_t i = 0; i < 199; ++i) EXPECT_EQ(clients[i].receive_rest(), "") << i;
  for (size_t i = 202; i < 299; ++i) EXPECT_EQ(clients[i].ask(get_text("/b")).body, "/b ") << i;
}

TEST_F(HttpServerTest, WithoutRoomClientsAreToldToClose) {
  options_.max_connections = 2;
  start();
  HttpClient first = client();
  EXPECT_FALSE(first.ask(get_text("/a")).closes());
  HttpClient second = client();
  EXPECT_TRUE(second.ask(get_text("/a")).closes());
}

TEST_F(HttpServerTest, AConnectionThatShallEndAnswersWhatHasArrived) {
  options_.max_connections = 2;
  options_.max_requests = 1;
  std::atomic<bool> is_held = true, is_inside = false;
  start([&](const HttpRequest& request) {
    is_inside = true;
    while (is_held) std::this_thread::sleep_for(milliseconds(5));
    return echo(request);
  });
  HttpClient first = client(), second = client();
  first.send(get_text("/a"));
  while (!is_inside) std::this_thread::sleep_for(milliseconds(5));
  // The only thread is busy, so nobody reads this before the connection shall end.
  second.send(get_text("/b"));
  HttpClient third = client();
  std::this_thread::sleep_for(milliseconds(500));
  is_held = false;
  EXPECT_EQ(first.receive().body, "/a ");
  EXPECT_EQ(second.receive().body, "/b ");
  EXPECT_EQ(third.ask(get_text("/c")).body, "/c ");
}

TEST_F(HttpServerTest, MoreRequestsThanTheLimitWait) {
  options_.max_requests = 2;
  std::atomic<int> inside = 0, most = 0;
  start([&](const HttpRequest& request) {
    const int now = ++inside;
    if (now > most) most = now;
    std::this_thread::sleep_for(milliseconds(2));
    --inside;
    return echo(request);
  });
  std::vector<HttpClient> clients;
  for (int i = 0; i < 20; ++i) {
    clients.push_back(client());
    clients.back().send(get_text("/a"));
  }
  for (HttpClient& one : clients) EXPECT_EQ(one.receive().body, "/a ");
  EXPECT_LE(most, 2);
}

TEST_F(HttpServerTest, PartsOfRequestsNeedNoThread) {
  options_.max_requests = 2;
  start();
  std::vector<HttpClient> clients;
  const std::string whole = post_text("/c", "body");
  for (size_t i = 0; i < 300; ++i) {
    clients.push_back(client());
    clients.back().send(whole.substr(0, 1 + i % (whole.size() - 1)));
  }
  EXPECT_EQ(client().ask(get_text("/b")).body, "/b ");
  for (size_t i = 0; i < 300; ++i) {
    EXPECT_EQ(clients[i].ask(whole.substr(1 + i % (whole.size() - 1))).body, "/c body");
  }
}

TEST_F(HttpServerTest, PartsOfRequestsMakeRoom) {
  options_.max_connections = 100;
  start();
  std::vector<HttpClient> clients;
  for (int i = 0; i < 300; ++i) {
    clients.push_back(client());
    clients.back().send(post_text("/a", "body").substr(0, 50));
  }
  EXPECT_EQ(client().ask(get_text("/b")).body, "/b ");
  EXPECT_EQ(clients.front().receive().status, 408);
}

TEST_F(HttpServerTest, PartsOfRequestsHoldLessThanAllBodies) {
  options_.max_requests = 2;
  options_.limits.max_body_bytes = 10'000;
  start();
  std::vector<HttpClient> clients;
  const std::string whole = post_text("/a", std::string(9'999, 'x'));
  for (int i = 0; i < 6; ++i) {
    clients.push_back(client());
    clients.back().send(whole.substr(0, whole.size() - 1));
  }
  // Connections are accepted in their order.
  EXPECT_EQ(client().ask(get_text("/b")).body, "/b ");
  // With their heads, two are longer than two bodies may be.
  expect_connections(1);
  int answered = 0;
  for (HttpClient& one : clients) {
    const int status = one.ask("x").status;
    EXPECT_THAT(status, testing::AnyOf(0, 200, 408, 503));
    answered += status == 200;
  }
  EXPECT_EQ(answered, 1);
}

// Requests arrive at the moment at which their connections shall end for others.
TEST_F(HttpServerTest, ConnectionsMakeRoomWhileTheyAreUsed) {
  options_.max_connections = 8;
  start();
  std::vector<std::thread> threads;
  for (int thread = 0; thread < 12; ++thread) {
    threads.emplace_back([&, thread] {
      for (int round = 0; round < 30;) {
        HttpClient one = client();
        // One whose idle connection was closed asks on a new one.
        for (bool is_open = true; is_open && round < 30;) {
          const std::string body = std::to_string(thread) + "." + std::to_string(round);
          const ClientReply reply = one.ask(post_text("/a", body));
          is_open = reply.status == 200 && !reply.closes() && round % 7 != 0;
          if (reply.status == 0) continue;
          EXPECT_EQ(reply.status, 200);
          EXPECT_EQ(reply.body, "/a " + body);
          ++round;
        }
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  expect_connections(0);
}

}  // namespace
}  // namespace onebit::serve
