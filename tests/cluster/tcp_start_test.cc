#include "onebit/program/cluster/tcp_start.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace onebit::cluster {
namespace {

using testing::Contains;

TEST(HostRanks, LinesAreReadAsTheyWereWritten) {
  const HostRanks ranks = {.first = 4,
                           .ranks = 2,
                           .world = 8,
                           .host = 1,
                           .addresses = "10.0.0.1,10.1.0.1",
                           .port = 4000,
                           .variables = {"A=1", "B=two \"words\"\nand a line"}};
  const std::string line = line_of(ranks);
  EXPECT_EQ(line.find('\n'), std::string::npos);
  const auto read = parse_host_ranks(line);
  ASSERT_TRUE(read);
  EXPECT_EQ(read->variables, ranks.variables);
  EXPECT_EQ(read->variables_of(1), ranks.variables_of(1));
  const MeetingPlace place = {.addresses = "10.0.0.1,10.1.0.1", .port = 4000};
  const auto read_place = parse_meeting_place(line_of(place));
  ASSERT_TRUE(read_place);
  EXPECT_EQ(read_place->addresses, place.addresses);
  EXPECT_EQ(read_place->port, place.port);
}

// Hosts greet, and a line may be cut off.
TEST(HostRanks, OtherLinesAreNoErrors) {
  for (const char* line : {"", "Welcome to node1", "onebit-place ", "onebit-place x 10.0.0.1",
                           "onebit-ranks {", "onebit-ranks {\"first\": 0}", "onebit-ranks []"}) {
    EXPECT_FALSE(parse_host_ranks(line)) << line;
    EXPECT_FALSE(parse_meeting_place(line)) << line;
  }
}

TEST(HostRanks, EveryRankKnowsItsPlace) {
  const HostRanks ranks = {.first = 4,
                           .ranks = 2,
                           .world = 8,
                           .host = 2,
                           .addresses = "10.0.0.1",
                           .port = 4000,
                           .variables = {"OMP_WAIT_POLICY=passive"}};
  const std::vector<std::string> second = ranks.variables_of(1);
  for (const char* variable :
       {"OMP_WAIT_POLICY=passive", "ONEBIT_TRANSPORT=tcp", "RANK=5", "WORLD_SIZE=8", "LOCAL_RANK=1",
        "LOCAL_WORLD_SIZE=2", "GROUP_RANK=2", "MASTER_ADDR=10.0.0.1", "MASTER_PORT=4000"}) {
    EXPECT_THAT(second, Contains(variable));
  }
}

}  // namespace
}  // namespace onebit::cluster
