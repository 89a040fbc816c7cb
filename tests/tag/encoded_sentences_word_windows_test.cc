#include "onebit/apps/tag/encoded_sentences.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <random>

namespace onebit::tag {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST(WordWindows, AShortSentenceIsOne) {
  const std::vector<uint32_t> starts = {0, 1, 4, 5};
  EXPECT_THAT(word_windows(starts, 5, 2), ElementsAre(WordWindow{0, 3, 0, 3}));
  EXPECT_THAT(word_windows(std::vector<uint32_t>{0}, 5, 2), IsEmpty());
}

TEST(WordWindows, OfAPieceEach) {
  const std::vector<uint32_t> starts = {0, 1, 2, 3, 4, 5, 6, 7};
  // Word 3 is next to the last one of the first window and to the first one of the second.
  EXPECT_THAT(word_windows(starts, 5, 2),
              ElementsAre(WordWindow{0, 5, 0, 4}, WordWindow{2, 5, 4, 3}));
}

TEST(WordWindows, AWordThatFillsOneIsAlone) {
  const std::vector<uint32_t> starts = {0, 1, 5, 6};
  EXPECT_THAT(word_windows(starts, 4, 2),
              ElementsAre(WordWindow{0, 1, 0, 1}, WordWindow{1, 1, 1, 1}, WordWindow{2, 1, 2, 1}));
}

// Compares with a search over all windows: each word is in its best window.
TEST(WordWindows, EveryWordHasItsBestWindow) {
  std::mt19937 random(3);
  int64_t several = 0;
  for (int round = 0; round < 500; ++round) {
    const int64_t longest = 4 + static_cast<int64_t>(random() % 12);
    const int64_t stride = 1 + static_cast<int64_t>(random() % static_cast<uint64_t>(longest));
    std::vector<uint32_t> starts = {0};
    for (size_t words = random() % 40; words > 0; --words) {
      starts.push_back(starts.back() + 1 + static_cast<uint32_t>(random() % 4));
    }
    const auto windows = word_windows(starts, longest, stride);
    several += windows.size() > 1 ? 1 : 0;
    size_t next = 0;
    for (const WordWindow& window : windows) {
      EXPECT_EQ(window.first_owned, next);
      EXPECT_GE(window.owned, 1u);
      EXPECT_GE(window.first_owned, window.first);
      EXPECT_LE(window.first_owned + window.owned, window.first + window.words);
      EXPECT_LE(starts[window.first + window.words] - starts[window.first], longest);
      next += window.owned;
    }
    EXPECT_EQ(next, starts.size() - 1);
    const auto context = [&](const WordWindow& window, size_t word) -> int64_t {
      if (word < window.first || word >= window.first + window.words) return -1;
      return std::min<int64_t>(starts[word] - starts[window.first],
                               starts[window.first + window.words] - starts[word + 1]);
    };
    for (const WordWindow& owner : windows) {
      for (size_t word = owner.first_owned; word < owner.first_owned + owner.owned; ++word) {
        for (const WordWindow& other : windows) {
          EXPECT_GE(context(owner, word), context(other, word));
          if (other.first < owner.first) {
            EXPECT_GT(context(owner, word), context(other, word));
          }
        }
      }
    }
  }
  EXPECT_GT(several, 200);
}

}  // namespace
}  // namespace onebit::tag
