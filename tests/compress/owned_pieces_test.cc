#include "onebit/exchange/compress/owned_pieces.h"

#include <gtest/gtest.h>

#include "onebit/exchange/compress/compressed_all_reduce.h"
#include "tests/compress/owned_parts.h"
#include "tests/compress/test_values.h"

namespace onebit::compress {
namespace {

constexpr int64_t kBlockBytes = comm::kBlockElements * 4;

Ownership two_levels(int64_t elements, const std::vector<int>& node_of_rank) {
  const comm::Nodes nodes(node_of_rank);
  return {.buckets =
              two_level_buckets(elements, nodes.count(), nodes.ranks_per_node(), 4 * kBlockBytes),
          .world_size = nodes.ranks(),
          .nodes = nodes};
}

TEST(OwnedPieces, CarryEveryElementToItsNewOwner) {
  const int64_t elements = 70001;
  const std::vector<float> original = trials::values_of(0, 0, elements);
  const Ownership cuts[] = {{comm::Buckets(elements, 5 * kBlockBytes), 4},
                            {comm::Buckets(elements, 7 * kBlockBytes), 3},
                            {comm::Buckets(elements, kBlockBytes), 4},
                            {comm::Buckets(elements, 7 * kBlockBytes), 64},
                            owned_by_one(elements),
                            two_levels(elements, {0, 0, 1, 1}),
                            two_levels(elements, {0, 1, 2, 2, 1, 0})};
  for (const Ownership& before : cuts) {
    const auto kept = trials::owned_parts(before, original);
    for (const Ownership& now : cuts) {
      const auto wanted = trials::owned_parts(now, original);
      for (int rank = 0; rank < now.world_size; ++rank) {
        std::vector<float> found(wanted[static_cast<size_t>(rank)].size());
        int64_t next = 0;
        for (const OwnedPiece& piece : owned_pieces(before, now, rank)) {
          EXPECT_EQ(piece.to, next) << "one after the other";
          next += piece.elements;
          std::copy_n(kept[static_cast<size_t>(piece.from_rank)].begin() + piece.from,
                      piece.elements, found.begin() + piece.to);
        }
        EXPECT_EQ(next, static_cast<int64_t>(found.size()));
        EXPECT_EQ(found, wanted[static_cast<size_t>(rank)]);
      }
    }
  }
}

TEST(OwnedPieces, AreOneWhereNothingHasChanged) {
  const Ownership cut{comm::Buckets(70001, 5 * kBlockBytes), 4};
  for (int rank = 0; rank < 4; ++rank) {
    const OwnedPiece all{.from_rank = rank, .elements = cut.buckets.owned_elements(4, rank)};
    EXPECT_EQ(owned_pieces(cut, cut, rank), std::vector<OwnedPiece>{all});
  }
}

// On one level a share is everything. On two the shares of a node's ranks are.
TEST(Ownership, SharesOfASourceMakeTheBuffer) {
  for (const int64_t elements : {int64_t{4 * comm::kBlockElements}, int64_t{70001 / 16 * 16}}) {
    for (const std::vector<int>& nodes :
         {std::vector<int>{0, 0, 1, 1}, std::vector<int>{0, 1, 1, 0, 0, 1}}) {
      const Ownership two = two_levels(elements, nodes);
      for (int source = 0; source < two.sources(); ++source) {
        std::vector<int> counted(static_cast<size_t>(elements), 0);
        for (int local = 0; local < two.ranks_per_source(); ++local) {
          const int rank = two.rank_of(source, local);
          EXPECT_EQ(two.source_of(rank), source);
          EXPECT_EQ(two.local_of(rank), local);
          const comm::Buckets parts = two.share_buckets(rank);
          ASSERT_EQ(parts.count(), two.buckets.count());
          int64_t place = 0;
          for (const OwnedRange& share : two.shares(rank)) {
            EXPECT_EQ(share.place, place);
            place += share.range.elements();
            for (int64_t i = share.range.begin; i < share.range.end; ++i) {
              ++counted[static_cast<size_t>(i)];
            }
          }
          EXPECT_EQ(place, parts.elements());
          // The parts of buckets are the buckets of the share.
          for (int64_t bucket = 0; bucket < parts.count(); ++bucket) {
            const Range part = two.share_of(bucket, rank);
            EXPECT_EQ(part.elements(), parts.range(bucket).elements());
            EXPECT_GT(part.elements(), 0);
            const auto inside = within(two.shares(rank), part);
            ASSERT_EQ(inside.size(), 1u);
            EXPECT_EQ(inside[0].place, parts.range(bucket).begin);
          }
        }
        for (const int count : counted) ASSERT_EQ(count, 1);
      }
    }
  }
  const Ownership one{comm::Buckets(70000, 5 * kBlockBytes), 4};
  EXPECT_EQ(one.shares(2), (std::vector<OwnedRange>{{.range = {0, 70000}, .place = 0}}));
}

}  // namespace
}  // namespace onebit::compress
