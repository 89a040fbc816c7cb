#include "onebit/exchange/checkpoint/disks.h"

#include <gtest/gtest.h>

#include <fstream>

#include "onebit/exchange/comm/thread_communicator.h"
#include "onebit/ground/base/folder.h"
#include "tests/base/message_of.h"
#include "tests/base/temporary_folder.h"

namespace onebit::checkpoint {
namespace {

// Returns what ranks detect if their folders are on these disks.
std::vector<Disks> find_on(const TemporaryFolder& root, const std::vector<int>& disk_of_rank) {
  std::vector<Disks> found(disk_of_rank.size());
  comm::run_thread_world(static_cast<int>(disk_of_rank.size()), [&](comm::Communicator& one) {
    const auto rank = static_cast<size_t>(one.rank());
    found[rank] = find_disks(one, root / std::to_string(disk_of_rank[rank]) / "run");
  });
  return found;
}

TEST(Disks, AreFoundByWhoSeesWhat) {
  const std::vector<std::vector<int>> layouts = {{0},       {0, 0},       {0, 1},       {0, 0, 0},
                                                 {0, 1, 1}, {0, 1, 0, 1}, {0, 1, 2, 2}, {2, 1, 0}};
  for (const std::vector<int>& layout : layouts) {
    const TemporaryFolder root;
    const std::vector<Disks> found = find_on(root, layout);
    const comm::Nodes expected(layout);
    for (const Disks& disks : found) {
      EXPECT_EQ(disks.ranks, expected);
      EXPECT_EQ(disks.start, found[0].start);
      EXPECT_EQ(static_cast<int>(disks.names.size()), expected.count());
    }
  }
}

TEST(Disks, LeaveNothing) {
  const TemporaryFolder root;
  find_on(root, {0, 1, 0, 1});
  EXPECT_EQ(root.entries(), 0);
  make_folder(root / "0/run/kept");
  find_on(root, {0, 1, 0, 1});
  EXPECT_EQ(root.entries(), 1);
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(root / "0/run"), {}), 1);
}

TEST(Disks, LaterStartsSortBehind) {
  const TemporaryFolder root;
  const std::string first = find_on(root, {0, 1})[0].start, second = find_on(root, {0, 1})[0].start;
  EXPECT_LT(first.substr(0, 12), second.substr(0, 12) + "~");
  EXPECT_NE(first, second);
}

TEST(Disks, AFolderThatCannotBeMadeIsNamed) {
  const TemporaryFolder root;
  std::ofstream(root / "0") << "a file";
  const std::string message = message_of([&] { find_on(root, {0, 1}); });
  EXPECT_NE(message.find((root / "0").string() + ": cannot be created"), std::string::npos)
      << message;
}

TEST(Disks, KeepShardsInARing) {
  const Disks disks = {.ranks = comm::Nodes({0, 0, 1, 2}), .names = {"a", "b", "c"}, .start = {}};
  EXPECT_EQ(disks.keepers_of(1, 1), std::vector<int>({0}));
  EXPECT_EQ(disks.keepers_of(1, 2), std::vector<int>({0, 1}));
  EXPECT_EQ(disks.keepers_of(3, 2), std::vector<int>({2, 0}));
  EXPECT_EQ(disks.keepers_of(3, 9), std::vector<int>({2, 0, 1}));
  EXPECT_EQ(disks.shards_on(0, 1), 2);
  EXPECT_EQ(disks.shards_on(0, 2), 3);
  EXPECT_EQ(disks.shards_on(1, 2), 3);
  EXPECT_EQ(disks.shards_on(2, 2), 2);
  EXPECT_EQ(disks.shards_on(2, 3), 4);
}

}  // namespace
}  // namespace onebit::checkpoint
