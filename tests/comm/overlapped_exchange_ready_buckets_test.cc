#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <vector>

#include "onebit/exchange/comm/overlapped_exchange.h"
#include "onebit/ground/base/error.h"

namespace onebit::comm {
namespace {

constexpr int64_t kBlockBytes = kBlockElements * 4;

TEST(ReadyBuckets, LeaveInOrderOfTheirNumbersWhateverTheOrderOfRanges) {
  const int64_t elements = 9 * kBlockElements + 77;
  const Buckets buckets(elements, 2 * kBlockBytes);
  ReadyBuckets ready(buckets);
  std::mt19937 random(7);
  for (int pass = 0; pass < 20; ++pass) {
    std::vector<int64_t> cuts{0, elements};
    for (int i = 0; i < 12; ++i) {
      cuts.push_back(static_cast<int64_t>(random() % static_cast<uint64_t>(elements)));
    }
    std::ranges::sort(cuts);
    std::vector<Range> ranges;
    for (size_t i = 1; i < cuts.size(); ++i) ranges.push_back({cuts[i - 1], cuts[i]});
    std::ranges::shuffle(ranges, random);
    std::vector<int64_t> left;
    std::vector<bool> covered(static_cast<size_t>(elements));
    for (const Range range : ranges) {
      std::fill(covered.begin() + range.begin, covered.begin() + range.end, true);
      for (const int64_t bucket : ready.ready(range)) {
        left.push_back(bucket);
        const Range whole = buckets.range(bucket);
        EXPECT_TRUE(std::all_of(covered.begin() + whole.begin, covered.begin() + whole.end,
                                [](bool is) { return is; }));
      }
    }
    EXPECT_TRUE(ready.all_ready());
    EXPECT_EQ(static_cast<int64_t>(left.size()), buckets.count());
    EXPECT_TRUE(std::ranges::is_sorted(left));
    ready.restart();
  }
}

TEST(ReadyBuckets, LeaveAsSoonAsTheyCan) {
  ReadyBuckets ready(Buckets(4 * kBlockElements, 2 * kBlockBytes));
  EXPECT_TRUE(ready.ready({0, 2 * kBlockElements}).empty()) << "the last one waits for the first";
  EXPECT_TRUE(ready.ready({3 * kBlockElements, 4 * kBlockElements}).empty());
  EXPECT_EQ(ready.ready({2 * kBlockElements, 3 * kBlockElements}), (std::vector<int64_t>{0, 1}));
}

TEST(ReadyBuckets, RefuseElementsTwiceOrOutside) {
  ReadyBuckets ready(Buckets(3000, kBlockBytes));
  EXPECT_THROW(ready.ready({0, 3001}), Error);
  ready.ready({0, 3000});
  EXPECT_THROW(ready.ready({5, 6}), Error);
}

}  // namespace
}  // namespace onebit::comm
