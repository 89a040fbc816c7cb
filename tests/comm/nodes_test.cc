#include "onebit/exchange/comm/nodes.h"

#include <gtest/gtest.h>

#include "onebit/exchange/comm/thread_communicator.h"

namespace onebit::comm {
namespace {

TEST(Nodes, AreNumberedByTheirFirstRanks) {
  const Nodes nodes({7, 3, 7, 3, 3});
  EXPECT_EQ(nodes.ranks(), 5);
  EXPECT_EQ(nodes.count(), 2);
  EXPECT_EQ(nodes.node_of_rank(), (std::vector<int>{0, 1, 0, 1, 1}));
  EXPECT_EQ(nodes.local_of(2), 1);
  EXPECT_EQ(nodes.local_of(4), 2);
  EXPECT_EQ(nodes.ranks_of(1).back(), 4);
  EXPECT_FALSE(nodes.even());
  EXPECT_TRUE(Nodes({1, 0, 0, 1}).even());
  EXPECT_EQ(Nodes({1, 0, 0, 1}), Nodes({5, 6, 6, 5}));
}

TEST(Nodes, ComeInGroups) {
  EXPECT_EQ(Nodes::groups(4, 2), Nodes({0, 0, 1, 1}));
  EXPECT_EQ(Nodes::groups(3, 2), Nodes({0, 0, 1}));
  EXPECT_EQ(Nodes::one(3), Nodes::groups(3, 8));
}

TEST(Nodes, OfSomeRanks) {
  const std::vector<int> ranks{0, 3, 4};
  EXPECT_EQ(Nodes({0, 0, 1, 1, 2}).of(ranks), Nodes({0, 1, 2}));
}

// Communicators that are made from another one, or count its traffic, inherit its groups.
TEST(Nodes, AreInheritedByCommunicators) {
  run_thread_world(4, [](Communicator& world) {
    EXPECT_EQ(world.nodes(), Nodes::one(4));
    world.set_nodes(Nodes({0, 1, 0, 1}));
    const auto copy = world.duplicate();
    EXPECT_EQ(copy->nodes(), world.nodes());
    const auto node = world.split(world.nodes().node_of(world.rank()));
    EXPECT_EQ(node->nodes(), Nodes::one(2));
    EXPECT_EQ(world.split(world.rank() / 2)->nodes(), Nodes({0, 1}));

    const int64_t before = world.bytes_sent_inside_node();
    std::vector<std::byte> all(40);
    copy->all_gather(std::span(all).subspan(static_cast<size_t>(world.rank()) * 10, 10), all);
    EXPECT_EQ(world.bytes_sent_inside_node() - before, 10) << "to one of three";
    const int64_t sent = copy->wire_bytes_sent();
    EXPECT_EQ(sent, 30);
    node->all_gather(std::span(all).subspan(static_cast<size_t>(node->rank()) * 10, 10),
                     std::span(all).first(20));
    EXPECT_EQ(world.bytes_sent_inside_node() - before, 20);

    copy->count_inside_node_separately();
    copy->all_gather(std::span(all).subspan(static_cast<size_t>(world.rank()) * 10, 10), all);
    EXPECT_EQ(copy->bytes_sent_inside_node(), 10);
    EXPECT_EQ(world.bytes_sent_inside_node() - before, 20);
  });
}

}  // namespace
}  // namespace onebit::comm
