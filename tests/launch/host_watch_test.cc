#include "onebit/program/launch/host_watch.h"

#include <gtest/gtest.h>

namespace onebit::launch {
namespace {

using Kind = WatchReply::Kind;

TEST(WatchLines, RequestsComeBack) {
  for (const WatchRequest request :
       {WatchRequest::kBeat, WatchRequest::kLook, WatchRequest::kEnd}) {
    EXPECT_EQ(parse_watch_request(line_of(request)), request) << line_of(request);
  }
  EXPECT_EQ(line_of(WatchRequest::kLook), "look");
}

TEST(WatchLines, RepliesComeBack) {
  for (const WatchReply& reply :
       {WatchReply{.kind = Kind::kBeat}, WatchReply{.kind = Kind::kReady},
        WatchReply{.kind = Kind::kRank, .rank = 12, .state = 'T'},
        WatchReply{.kind = Kind::kLooked}, WatchReply{.kind = Kind::kEnded},
        WatchReply{.kind = Kind::kEnded, .ended_ranks = {3, 5}}}) {
    const std::string line = line_of(reply);
    const auto read = parse_watch_reply(line);
    ASSERT_TRUE(read) << line;
    EXPECT_EQ(read->kind, reply.kind) << line;
    EXPECT_EQ(read->rank, reply.rank) << line;
    EXPECT_EQ(read->state, reply.state) << line;
    EXPECT_EQ(read->ended_ranks, reply.ended_ranks) << line;
  }
}

TEST(WatchLines, OfAShellAreNone) {
  for (const char* line : {"", "Welcome", "ready to go", "beat 1", "rank", "rank 1", "rank 1 ",
                           "rank x T", "rank 1 TT", "rank 1 T ", "ended", "ended ", "ended one",
                           "ended 1  2", "ended 1 none", " look"}) {
    EXPECT_FALSE(parse_watch_reply(line)) << line;
    EXPECT_FALSE(parse_watch_request(line)) << line;
  }
}

}  // namespace
}  // namespace onebit::launch
