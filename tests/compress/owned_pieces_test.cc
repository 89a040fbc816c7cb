#include "onebit/compress/owned_pieces.h"

#include <gtest/gtest.h>

#include "tests/compress/owned_parts.h"
#include "tests/compress/test_values.h"

namespace onebit::compress {
namespace {

constexpr int64_t kBlockBytes = comm::kBlockElements * 4;

TEST(OwnedPieces, CarryEveryElementToItsNewOwner) {
  const int64_t elements = 70001;
  const std::vector<float> original = testing::values_of(0, 0, elements);
  const Ownership cuts[] = {{comm::Buckets(elements, 5 * kBlockBytes), 4},
                            {comm::Buckets(elements, 7 * kBlockBytes), 3},
                            {comm::Buckets(elements, kBlockBytes), 4},
                            {comm::Buckets(elements, 7 * kBlockBytes), 64},
                            owned_by_one(elements)};
  for (const Ownership& before : cuts) {
    const auto kept = testing::owned_parts(before, original);
    for (const Ownership& now : cuts) {
      const auto wanted = testing::owned_parts(now, original);
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

}  // namespace
}  // namespace onebit::compress
