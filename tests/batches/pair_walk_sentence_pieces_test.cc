#include "onebit/data/batches/pair_walk.h"

#include <gtest/gtest.h>

#include <set>

#include "tests/base/temporary_folder.h"
#include "tests/corpus/sample_store.h"

namespace onebit::batches {
namespace {

// The sizes of all pieces of `sentence`.
std::vector<int64_t> sizes_of(SentencePieces& pieces, uint64_t sentence) {
  std::vector<int64_t> sizes;
  for (TextPlace place{sentence}; place.sentence == sentence;) {
    const TextPlace next = pieces.after(place);
    sizes.push_back(static_cast<int64_t>(pieces.token(next) - pieces.token(place)));
    place = next;
  }
  return sizes;
}

TEST(SentencePieces, LeaveASentenceWholeThatFits) {
  const TemporaryFolder folder;
  const auto store = corpus::make_store(folder / "store", {{124, 125, 126}});
  SentencePieces pieces(*store, 125, 7);
  for (const uint64_t sentence : {0, 1}) {
    EXPECT_FALSE(pieces.is_cut(sentence));
    EXPECT_EQ(pieces.count(sentence), 1u);
    EXPECT_EQ(pieces.after({sentence}), TextPlace{sentence + 1});
  }
  EXPECT_TRUE(pieces.is_cut(2));
  EXPECT_GT(pieces.count(2), 7u);
}

TEST(SentencePieces, CoverASentenceWithEighthsOfASequence) {
  const TemporaryFolder folder;
  const auto store = corpus::make_store(folder / "store", {{3, 126, 1000, 4999, 2}});
  for (const int64_t longest : {5, 6, 13, 31, 32, 61, 125, 126, 509}) {
    const int64_t in_sequence = longest < 32 ? 2 : 8, least = longest / (2 * in_sequence);
    for (uint64_t seed = 0; seed < 50; ++seed) {
      SentencePieces pieces(*store, longest, seed);
      for (uint64_t sentence = 0; sentence < store->sentences(); ++sentence) {
        const std::vector<int64_t> sizes = sizes_of(pieces, sentence);
        ASSERT_EQ(sizes.size(), pieces.count(sentence));
        int64_t sum = 0;
        for (size_t i = 0; i < sizes.size(); ++i) {
          sum += sizes[i];
          if (sizes.size() == 1) continue;
          ASSERT_GE(sizes[i], least);
          ASSERT_LE(sizes[i], longest / in_sequence + 1 + least);
        }
        ASSERT_EQ(sum, static_cast<int64_t>(store->sentence_begin(sentence + 1) -
                                            store->sentence_begin(sentence)));
        // Inner pieces fill a sequence exactly.
        const auto full = static_cast<size_t>(in_sequence);
        for (size_t i = 1; i + full < sizes.size(); ++i) {
          int64_t together = 0;
          for (size_t k = i; k < i + full; ++k) together += sizes[k];
          ASSERT_EQ(together, longest);
        }
      }
    }
  }
}

TEST(SentencePieces, BeginElsewhereInEveryEpoch) {
  const TemporaryFolder folder;
  const auto store = corpus::make_store(folder / "store", {{1000}});
  std::set<uint64_t> begins;
  for (uint64_t seed = 0; seed < 400; ++seed) {
    SentencePieces pieces(*store, 125, seed), again(*store, 125, seed);
    begins.insert(pieces.token({0, 1}));
    ASSERT_EQ(again.token({0, 1}), pieces.token({0, 1}));
  }
  EXPECT_EQ(begins.size(), 16u);
}

TEST(SentencePieces, FindTheFirstPlaceFromATokenOn) {
  const TemporaryFolder folder;
  const auto store = corpus::make_store(folder / "store", {{3, 700, 20}});
  for (const int64_t longest : {6, 61, 125}) {
    SentencePieces pieces(*store, longest, 11);
    for (uint64_t token = 0; token < store->tokens(); ++token) {
      for (uint64_t sentence = 0; sentence < store->sentences(); ++sentence) {
        const uint64_t begin = store->sentence_begin(sentence);
        if (token < begin || token > store->sentence_begin(sentence + 1)) continue;
        TextPlace wanted{sentence};
        while (wanted.sentence == sentence && pieces.token(wanted) < token) {
          wanted = pieces.after(wanted);
        }
        ASSERT_EQ(pieces.first_from(token, sentence), wanted) << token;
      }
    }
  }
}

// Every fifth token continues a word.
TEST(SentencePieces, BeginWithAWord) {
  const TemporaryFolder folder;
  const auto store = corpus::make_store(folder / "store", {{1000}}, 0, true);
  int moved = 0;
  for (uint64_t seed = 0; seed < 20; ++seed) {
    SentencePieces pieces(*store, 125, seed);
    uint64_t before = 0;
    for (TextPlace place = pieces.after({0}); place.sentence == 0; place = pieces.after(place)) {
      const uint64_t begin = pieces.word_begin(place), cut = pieces.token(place);
      const bool inside = (cut + corpus::kFirstWord) % 5 == 0;
      ASSERT_EQ(begin, inside ? cut - 1 : cut);
      ASSERT_GT(begin, before);
      before = begin;
      moved += inside;
    }
  }
  EXPECT_GT(moved, 0);
}

// A word without a beginning is cut all the same, and no piece is empty.
TEST(SentencePieces, CutAWordThatIsLongerThanAPiece) {
  const TemporaryFolder folder;
  corpus::StoreWriter writer(folder / "store", false);
  writer.set_vocabulary(corpus::sample_vocabulary(20, true), text::Casing::kUncased);
  corpus::TokenizedBlock block(writer.token_size_bytes(), 0);
  std::vector<int32_t> ids(1000, 10);  // "##w10"
  ids[0] = 7;
  block.add_sentence(ids);
  block.end_document();
  block.close();
  writer.add(block);
  writer.finish(0, "sample", {"sample"});
  const corpus::TokenStore store(folder / "store");
  for (const int64_t longest : {5, 31, 125}) {
    SentencePieces pieces(store, longest, 3);
    for (TextPlace place{0}; place.sentence == 0; place = pieces.after(place)) {
      ASSERT_EQ(pieces.word_begin(place), pieces.token(place));
    }
  }
}

}  // namespace
}  // namespace onebit::batches
