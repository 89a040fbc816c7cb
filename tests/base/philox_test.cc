#include "onebit/ground/base/philox.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <set>

namespace onebit {
namespace {

struct KnownAnswer {
  int rounds;
  PhiloxCounter counter;
  PhiloxKey key;
  PhiloxCounter expected;
};

// The philox4x32 lines of Random123's kat_vectors (Salmon et al., SC 2011).
const KnownAnswer kKnownAnswers[] = {
    {7, {{0, 0, 0, 0}}, {{0, 0}}, {{0x5f6fb709, 0x0d893f64, 0x4f121f81, 0x4f730a48}}},
    {7,
     {{0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff}},
     {{0xffffffff, 0xffffffff}},
     {{0x5207ddc2, 0x45165e59, 0x4d8ee751, 0x8c52f662}}},
    {7,
     {{0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}},
     {{0xa4093822, 0x299f31d0}},
     {{0x4dfccaba, 0x190a87f0, 0xc47362ba, 0xb6b5242a}}},
    {10, {{0, 0, 0, 0}}, {{0, 0}}, {{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}}},
    {10,
     {{0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff}},
     {{0xffffffff, 0xffffffff}},
     {{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}}},
    {10,
     {{0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}},
     {{0xa4093822, 0x299f31d0}},
     {{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}}},
};

TEST(Philox, PublishedKnownAnswers) {
  for (const auto& [rounds, counter, key, expected] : kKnownAnswers) {
    const PhiloxCounter got = philox(counter, key, rounds);
    for (int i = 0; i < 4; ++i)
      EXPECT_EQ(got.word[i], expected.word[i]) << rounds << " rounds, word " << i;
  }
}

TEST(Philox, KeyHoldsAllBitsOfTheSeed) {
  const PhiloxKey key = philox_key(0x0123456789abcdefull);
  EXPECT_EQ(key.word[0], 0x89abcdefu);
  EXPECT_EQ(key.word[1], 0x01234567u);
}

TEST(RandomSequence, IsAFunctionOfSeedStreamIndex) {
  std::set<uint32_t> firsts;
  for (uint64_t seed = 0; seed < 4; ++seed) {
    for (uint64_t stream = 0; stream < 4; ++stream) {
      for (uint64_t index = 0; index < 4; ++index) {
        RandomSequence one(seed, stream, index), again(seed, stream, index);
        const uint32_t first = one.next_u32();
        EXPECT_EQ(first, again.next_u32());
        firsts.insert(first);
        for (int i = 0; i < 9; ++i) EXPECT_EQ(one.next_u32(), again.next_u32());
      }
    }
  }
  EXPECT_EQ(firsts.size(), 64u);
}

TEST(RandomSequence, ServesTheBlocksOfPhiloxInOrder) {
  RandomSequence sequence(7, 0, 5);
  for (uint32_t draw = 0; draw < 3; ++draw) {
    const PhiloxCounter block = philox({{5, 0, draw, 0}}, philox_key(7));
    for (const uint32_t word : block.word) EXPECT_EQ(sequence.next_u32(), word);
  }
}

TEST(RandomSequence, BelowIsUniform) {
  // A plain modulo of this bound would make values under 2^30 twice as likely as the others. A
  // count of n draws of probability p lies within 6 sqrt(n p (1 - p)) of n p, but for one run in
  // 5e8.
  const uint32_t bound = 3u << 30;
  const int draws = 200000;
  RandomSequence sequence(1, 2, 3);
  std::array<int, 3> thirds{};
  for (int i = 0; i < draws; ++i) {
    const uint32_t value = sequence.below(bound);
    ASSERT_LT(value, bound);
    ++thirds[value >> 30];
  }
  const double slack = 6 * std::sqrt(draws * (1.0 / 3) * (2.0 / 3));
  for (const int count : thirds) EXPECT_NEAR(count, draws / 3.0, slack);
}

TEST(RandomSequence, BelowCoversSmallBounds) {
  for (uint32_t bound : {1u, 2u, 3u, 7u, 10u}) {
    const int draws = 20000;
    RandomSequence sequence(11, bound, 0);
    std::vector<int> counts(bound);
    for (int i = 0; i < draws; ++i) ++counts.at(sequence.below(bound));
    const double p = 1.0 / bound, slack = 6 * std::sqrt(draws * p * (1 - p));
    for (const int count : counts) EXPECT_NEAR(count, draws * p, slack) << "bound " << bound;
  }
}

TEST(RandomSequence, UniformLiesInTheUnitInterval) {
  RandomSequence sequence(3, 0, 0);
  const int draws = 100000;
  double sum = 0, squares = 0;
  for (int i = 0; i < draws; ++i) {
    const double value = sequence.uniform();
    ASSERT_GE(value, 0.0);
    ASSERT_LT(value, 1.0);
    sum += value;
    squares += value * value;
  }
  // Standard deviations of u and of u^2: sqrt(1/12) and sqrt(4/45).
  EXPECT_NEAR(sum / draws, 0.5, 6 * std::sqrt(1.0 / 12 / draws));
  EXPECT_NEAR(squares / draws, 1.0 / 3, 6 * std::sqrt(4.0 / 45 / draws));
}

}  // namespace
}  // namespace onebit
