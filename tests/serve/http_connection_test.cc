#include "onebit/program/serve/http_connection.h"

#include <gtest/gtest.h>
#include <sys/socket.h>

#include <array>
#include <string>
#include <thread>

namespace onebit::serve {
namespace {

using std::chrono::milliseconds;
using Arrival = HttpConnection::Arrival;

class HttpConnectionTest : public testing::Test {
 protected:
  HttpConnectionTest() {
    limits_.silence = limits_.whole_request = milliseconds(60'000);
    std::array<int, 2> ends{};
    EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()), 0);
    connection_.emplace(Socket(ends[0]), limits_);
    client_ = Socket(ends[1]);
  }
  void send(std::string_view text) const {
    ASSERT_EQ(::send(client_.get(), text.data(), text.size(), 0), std::ssize(text));
  }
  std::string received(size_t bytes) const {
    std::string text(bytes, '\0');
    EXPECT_EQ(::recv(client_.get(), text.data(), bytes, MSG_WAITALL), std::ssize(text));
    return text;
  }

  ConnectionLimits limits_;
  std::optional<HttpConnection> connection_;
  Socket client_;
};

TEST_F(HttpConnectionTest, LooksWithoutWaiting) {
  EXPECT_EQ(connection_->look(), Arrival::kNothing);
  send("\r\n");
  EXPECT_EQ(connection_->look(), Arrival::kBytes);
  EXPECT_FALSE(connection_->take_request());
  EXPECT_FALSE(connection_->is_begun()) << "an empty line is no request";
  send("GET /a HTTP/1.1\r\n");
  EXPECT_EQ(connection_->look(), Arrival::kBytes);
  EXPECT_FALSE(connection_->take_request());
  EXPECT_TRUE(connection_->is_begun());
  EXPECT_FALSE(connection_->is_gone());
  client_.close();
  EXPECT_TRUE(connection_->is_gone());
  EXPECT_EQ(connection_->look(), Arrival::kClosed);
}

TEST_F(HttpConnectionTest, KeepsWhatComesBehindARequest) {
  send("GET /a HTTP/1.1\r\nHost: a\r\n\r\nGET /b HTTP/1.1\r\nHo");
  EXPECT_EQ(connection_->look(), Arrival::kBytes);
  EXPECT_EQ(connection_->take_request()->path, "/a");
  EXPECT_FALSE(connection_->take_request());
  EXPECT_TRUE(connection_->is_begun());
  EXPECT_GT(connection_->begun_bytes(), 0U);
  send("st: a\r\n\r\n");
  EXPECT_EQ(connection_->look(), Arrival::kBytes);
  EXPECT_EQ(connection_->take_request()->path, "/b");
  EXPECT_FALSE(connection_->is_begun());
  EXPECT_EQ(connection_->begun_bytes(), 0U);
}

TEST_F(HttpConnectionTest, APartOfARequestIsLateAfterSilenceOrAsAWhole) {
  limits_.silence = milliseconds(20'000);
  send("GET /a HTTP/1.1\r\n");
  connection_->look();
  EXPECT_FALSE(connection_->take_request());
  const auto first = connection_->waits_since();
  EXPECT_EQ(connection_->is_late_at(), first + limits_.silence);
  std::this_thread::sleep_for(milliseconds(2));
  send("Host: a\r\n");
  connection_->look();
  EXPECT_FALSE(connection_->take_request());
  EXPECT_GT(connection_->waits_since(), first);
  EXPECT_EQ(connection_->is_late_at(), connection_->waits_since() + limits_.silence);
  // What arrives later does not move the end of the whole request.
  limits_.whole_request = milliseconds(1);
  EXPECT_EQ(connection_->is_late_at(), first + limits_.whole_request);
  send("A: b\r\n");
  connection_->look();
  EXPECT_FALSE(connection_->take_request());
  EXPECT_EQ(connection_->is_late_at(), first + limits_.whole_request);
  send("\r\n");
  connection_->look();
  EXPECT_TRUE(connection_->take_request()) << "late, but whole";
}

// Head and body lie in different places, and the client takes them in any pieces.
TEST_F(HttpConnectionTest, SendsLongReplies) {
  HttpReply reply{.body = std::string(size_t{4} << 20, 'x')};
  reply.body += "end";
  const std::string whole = reply_head(reply, false) + reply.body;
  std::string text;
  std::thread reads([&] { text = received(whole.size()); });
  EXPECT_TRUE(connection_->send(reply, false, true));
  reads.join();
  EXPECT_TRUE(text == whole);
  const std::string head = reply_head(reply, true);
  EXPECT_TRUE(connection_->send(reply, true, false));
  EXPECT_EQ(received(head.size()), head);
  client_.close();
  EXPECT_FALSE(connection_->send(reply, true, true));
}

TEST_F(HttpConnectionTest, ItsIdleTimeBeginsWithTheReply) {
  const auto begin = connection_->waits_since();
  std::this_thread::sleep_for(milliseconds(2));
  EXPECT_EQ(connection_->waits_since(), begin);
  send("\r\n\r\n");
  EXPECT_EQ(connection_->look(), Arrival::kBytes);
  EXPECT_FALSE(connection_->take_request());
  EXPECT_EQ(connection_->waits_since(), begin) << "empty lines are no request";
  EXPECT_TRUE(connection_->send(HttpReply{}, false, true));
  EXPECT_GT(connection_->waits_since(), begin);
}

}  // namespace
}  // namespace onebit::serve
