#include "onebit/program/cluster/link_end.h"

#include <gtest/gtest.h>

namespace onebit::cluster {
namespace {

void expect_equal(const LinkPlace& one, const LinkPlace& other) {
  EXPECT_EQ(one.token, other.token);
  EXPECT_EQ(one.ports, other.ports);
  EXPECT_EQ(one.addresses, other.addresses);
}

const LinkPlace kPlace = {
    .token = "0011", .ports = {1024, 0}, .addresses = {"10.0.0.1", "10.1.0.1"}};

TEST(LinkLines, RequestsComeBack) {
  using Kind = LinkRequest::Kind;
  for (const LinkRequest& request :
       {LinkRequest{.kind = Kind::kPeer, .peer = 3, .place = kPlace},
        LinkRequest{.kind = Kind::kTry}, LinkRequest{.kind = Kind::kMeasure, .peer = 2}}) {
    const auto read = parse_link_request(line_of(request));
    ASSERT_TRUE(read) << line_of(request);
    EXPECT_EQ(read->kind, request.kind);
    EXPECT_EQ(read->peer, request.peer);
    expect_equal(read->place, request.place);
  }
}

TEST(LinkLines, RepliesComeBack) {
  using Kind = LinkReply::Kind;
  for (const LinkReply& reply :
       {LinkReply{.kind = Kind::kReady, .place = kPlace},
        LinkReply{.kind = Kind::kFailed, .text = "no port\nis \"free\""},
        LinkReply{.kind = Kind::kClosed, .peer = 3, .range = 1, .text = "refused"},
        LinkReply{.kind = Kind::kTried},
        LinkReply{.kind = Kind::kMeasured, .peer = 1, .seconds = 5e-5, .bytes_per_second = 1e9}}) {
    const std::string line = line_of(reply);
    EXPECT_EQ(line.find('\n'), std::string::npos);
    const auto read = parse_link_reply(line);
    ASSERT_TRUE(read) << line;
    EXPECT_EQ(read->kind, reply.kind) << line;
    EXPECT_EQ(read->peer, reply.peer) << line;
    EXPECT_EQ(read->range, reply.range) << line;
    EXPECT_EQ(read->text, reply.text) << line;
    EXPECT_EQ(read->seconds, reply.seconds) << line;
    EXPECT_EQ(read->bytes_per_second, reply.bytes_per_second) << line;
    expect_equal(read->place, reply.place);
  }
}

TEST(LinkLines, OfAShellAreNone) {
  for (const char* line :
       {"", "Welcome", "{}", "[1]", R"({"link": "x"})", R"({"link": 3})", R"({"link": "ready"})",
        R"({"link": "peer", "peer": "x"})", R"({"link": "closed", "range": []})"}) {
    EXPECT_FALSE(parse_link_reply(line)) << line;
    EXPECT_FALSE(parse_link_request(line)) << line;
  }
}

}  // namespace
}  // namespace onebit::cluster
