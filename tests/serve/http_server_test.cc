#include "onebit/program/serve/http_server.h"

#include <gmock/gmock.h>

#include "tests/base/message_of.h"
#include "tests/serve/running_server.h"

namespace onebit::serve {
namespace {

using std::chrono::milliseconds;
using testing::HasSubstr;

TEST_F(HttpServerTest, AConnectionHasManyRequests) {
  start();
  EXPECT_TRUE(server_->is_loopback());
  HttpClient one = client();
  for (int i = 0; i < 20; ++i) {
    const ClientReply reply = one.ask(post_text("/a", std::to_string(i)));
    EXPECT_EQ(reply.status, 200);
    EXPECT_EQ(reply.body, "/a " + std::to_string(i));
    EXPECT_FALSE(reply.closes());
  }
  const ClientReply last = one.ask(get_text("/b", "Connection: close\r\n"));
  EXPECT_TRUE(last.closes());
  EXPECT_EQ(one.receive_rest(), "");
}

TEST_F(HttpServerTest, PipelinedRequestsAreAnsweredInOrder) {
  start();
  HttpClient one = client();
  std::string text;
  for (int i = 0; i < 50; ++i) text += post_text("/p", std::to_string(i));
  one.send(text);
  for (int i = 0; i < 50; ++i) EXPECT_EQ(one.receive().body, "/p " + std::to_string(i));
}

TEST_F(HttpServerTest, RequestsMayArriveByteByByte) {
  start();
  HttpClient one = client();
  const std::string text = post_text("/a", "bcd");
  for (size_t i = 0; i < text.size(); ++i) one.send(text.substr(i, 1));
  EXPECT_EQ(one.receive().body, "/a bcd");
  EXPECT_EQ(one.ask("POST /c HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: "
                    "chunked\r\n\r\n2\r\nde\r\n0\r\n\r\n")
                .body,
            "/c de");
}

TEST_F(HttpServerTest, AHeadHasNoBody) {
  start();
  HttpClient one = client();
  one.send("HEAD /a HTTP/1.1\r\nHost: a\r\n\r\n" + get_text("/b", "Connection: close\r\n"));
  const std::string text = one.receive_rest();
  EXPECT_THAT(text, HasSubstr("Content-Length: 3\r\n"));
  EXPECT_THAT(text, testing::Not(HasSubstr("/a ")));
  EXPECT_THAT(text, testing::EndsWith("/b "));
}

TEST_F(HttpServerTest, AClientThatWaitsIsAskedForItsBody) {
  start();
  HttpClient one = client();
  const std::string head =
      "POST /a HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: ";
  one.send(head + "3\r\n\r\n");
  EXPECT_EQ(one.receive().status, 100);
  EXPECT_EQ(one.ask("bcd").body, "/a bcd");
  // A body that is too large is refused before it is sent.
  const ClientReply refused = one.ask(head + "99999999\r\n\r\n");
  EXPECT_EQ(refused.status, 413);
}

TEST_F(HttpServerTest, ARefusalEndsTheConnection) {
  options_.limits.max_body_bytes = 10;
  start();
  const std::pair<std::string, int> cases[] = {
      {post_text("/a", "01234567890"), 413},
      {"nonsense\r\n\r\n", 400},
      {"GET / HTTP/1.1\nHost: a\n\n", 400},
      {"GET / HTTP/3.0\r\n\r\n", 505},
      {get_text("/", "X: " + std::string(40000, 'x') + "\r\n"), 431}};
  for (const auto& [text, status] : cases) {
    HttpClient one = client();
    const ClientReply reply = one.ask(text + get_text("/smuggled"));
    EXPECT_EQ(reply.status, status) << text.substr(0, 40);
    EXPECT_TRUE(reply.closes());
    EXPECT_EQ(one.receive_rest(), "");
  }
  EXPECT_EQ(client().ask(post_text("/a", "0123456789")).body, "/a 0123456789");
  // A refusal names the path as far as it is known.
  EXPECT_THAT(client().ask(post_text("/a", "01234567890")).body, testing::StartsWith("/a|"));
}

// The refusal arrives even if the client sends all of a body that is too large first.
TEST_F(HttpServerTest, ARefusalOfALargeBodyArrives) {
  options_.limits.max_body_bytes = 10;
  start();
  EXPECT_EQ(client().ask(post_text("/a", std::string(4'000'000, 'x'))).status, 413);
}

TEST_F(HttpServerTest, HalfARequestAndSilenceIs408) {
  options_.limits.silence = milliseconds(100);
  start();
  for (const std::string& text :
       {std::string("GE"), get_text("/").substr(0, 20),
        post_text("/", "abc").substr(0, post_text("/", "abc").size() - 1)}) {
    HttpClient one = client();
    const ClientReply reply = one.ask(text);
    EXPECT_EQ(reply.status, 408) << text;
    EXPECT_TRUE(reply.closes());
  }
}

TEST_F(HttpServerTest, ARequestInDropsIs408) {
  options_.limits.whole_request = milliseconds(300);
  start();
  HttpClient one = client();
  std::atomic<bool> ends = false;
  std::thread drops([&] {
    for (const char c : get_text("/" + std::string(1000, 'a'))) {
      if (ends) return;
      one.send({&c, 1});
      std::this_thread::sleep_for(milliseconds(5));
    }
  });
  EXPECT_EQ(one.receive().status, 408);
  ends = true;
  drops.join();
}

TEST_F(HttpServerTest, AnIdleConnectionIsClosedWithoutAWord) {
  options_.idle = milliseconds(100);
  start();
  HttpClient one = client();
  EXPECT_EQ(one.receive_rest(), "");
  HttpClient other = client();
  EXPECT_EQ(other.ask(get_text("/a")).status, 200);
  EXPECT_EQ(other.receive_rest(), "");
}

TEST_F(HttpServerTest, AClientThatDoesNotReadIsLeft) {
  options_.limits.silence = milliseconds(200);
  start();
  HttpClient one = client(4096);
  one.send(get_text("/large"));
  expect_connections(1);
  expect_connections(0);
}

TEST_F(HttpServerTest, ASlowReaderGetsItsReply) {
  start();
  HttpClient one = client(4096);
  EXPECT_EQ(one.ask(get_text("/large")).body.size(), size_t{32} << 20);
}

TEST_F(HttpServerTest, AClientThatGoesIsNoticed) {
  start();
  HttpClient closes = client(), is_killed = client();
  closes.send(get_text("/gone"));
  is_killed.send(get_text("/gone"));
  expect_connections(2);
  closes.end_sending();
  is_killed.reset();
  expect_connections(0);
}

TEST_F(HttpServerTest, StopAnswersWhatHasArrived) {
  std::atomic<int> inside = 0;
  start([&](const HttpRequest& request) {
    ++inside;
    while (!is_stopping_) std::this_thread::sleep_for(milliseconds(5));
    return echo(request);
  });
  std::vector<HttpClient> clients;
  for (int i = 0; i < 4; ++i) clients.push_back(client());
  for (HttpClient& one : clients) one.send(get_text("/a"));
  while (inside < 4) std::this_thread::sleep_for(milliseconds(5));
  stop();
  for (HttpClient& one : clients) {
    const ClientReply reply = one.receive();
    EXPECT_EQ(reply.body, "/a ");
    EXPECT_TRUE(reply.closes());
  }
}

TEST_F(HttpServerTest, StopDoesNotWaitForIdleConnections) {
  start();
  HttpClient one = client();
  EXPECT_EQ(one.ask(get_text("/a")).status, 200);
  stop();
  EXPECT_EQ(one.receive_rest(), "");
}

TEST_F(HttpServerTest, StopCutsWhatLastsTooLong) {
  options_.grace = milliseconds(100);
  start();
  HttpClient one = client();
  one.send(get_text("/gone"));
  expect_connections(1);
  stop();
  // The destructor waits for the thread, which sees that the connection is cut.
  server_.reset();
  EXPECT_EQ(one.receive().status, 0);
}

TEST_F(HttpServerTest, APortInUseIsNamed) {
  start();
  HttpServerOptions same = options_;
  same.port = port_;
  const std::string message = message_of([&] {
    const HttpServer second(same, echo,
                            [](const std::string&, const HttpError&) { return HttpReply{}; });
  });
  EXPECT_THAT(message, HasSubstr(std::to_string(port_)));
  EXPECT_THAT(message, HasSubstr("in use"));
  EXPECT_THAT(message, HasSubstr("--port"));
}

TEST_F(HttpServerTest, AHostOfAnotherMachineIsNamed) {
  options_.host = "192.0.2.1";  // for documentation only (RFC 5737)
  EXPECT_THAT(message_of([&] { start(); }), HasSubstr("--host"));
  options_.host = "no-such-host.invalid";
  EXPECT_THAT(message_of([&] { start(); }), HasSubstr("no-such-host.invalid"));
}

TEST_F(HttpServerTest, ClientsComeAndGo) {
  options_.max_connections = 16;
  start();
  std::vector<std::thread> threads;
  for (int thread = 0; thread < 8; ++thread) {
    threads.emplace_back([&, thread] {
      for (int round = 0; round < 30; ++round) {
        HttpClient one = client();
        const std::string body = std::to_string(thread) + "." + std::to_string(round);
        if (round % 3 == 0) {
          one.send(post_text("/a", body).substr(0, 30));
          one.reset();
        } else {
          EXPECT_EQ(one.ask(post_text("/a", body)).body, "/a " + body);
        }
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  expect_connections(0);
}

}  // namespace
}  // namespace onebit::serve
