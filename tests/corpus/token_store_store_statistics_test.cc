#include "onebit/data/corpus/token_store.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

#include "tests/base/temporary_folder.h"
#include "tests/corpus/sample_store.h"

namespace onebit::corpus {
namespace {

// Compares with figures that come from sorting all lengths.
void expect_lengths(const LengthStatistics& found, std::vector<uint64_t> lengths) {
  std::sort(lengths.begin(), lengths.end());
  const auto sum = std::accumulate(lengths.begin(), lengths.end(), uint64_t{0});
  EXPECT_DOUBLE_EQ(found.mean, static_cast<double>(sum) / static_cast<double>(lengths.size()));
  EXPECT_EQ(found.median, lengths[(lengths.size() - 1) / 2]);
  EXPECT_EQ(found.longest, lengths.back());
  std::vector<uint64_t> histogram;
  for (const uint64_t length : lengths) {
    size_t bin = 0;
    while (uint64_t{2} << bin <= length) ++bin;
    histogram.resize(std::max(histogram.size(), bin + 1));
    ++histogram[bin];
  }
  EXPECT_EQ(found.histogram, histogram);
}

TEST(StoreStatistics, AreThoseOfAllLengths) {
  const TemporaryFolder folder;
  std::vector<SampleDocument> documents = sample_documents(41, 5);
  documents.emplace_back(900, 9);  // longer than the lengths that are counted separately
  documents.push_back({5000, 512, 513});
  const auto store = make_store(folder / "store", documents);
  std::vector<uint64_t> sentence_tokens, document_tokens, document_sentences;
  for (const SampleDocument& document : documents) {
    document_sentences.push_back(document.size());
    document_tokens.push_back(0);
    for (const int tokens : document) {
      sentence_tokens.push_back(static_cast<uint64_t>(tokens));
      document_tokens.back() += static_cast<uint64_t>(tokens);
    }
  }
  const StoreStatistics found = statistics_of(*store);
  expect_lengths(found.sentence_tokens, sentence_tokens);
  expect_lengths(found.document_tokens, document_tokens);
  expect_lengths(found.document_sentences, document_sentences);
  EXPECT_EQ(found.unknown_tokens, 0u);
  EXPECT_EQ(found.long_sentence_tokens, 5513u);  // of more than 512 tokens each
}

TEST(StoreStatistics, CountUnknownTokens) {
  const TemporaryFolder folder;
  StoreWriter writer(folder / "store", false);
  const text::Vocabulary vocabulary = sample_vocabulary(20);
  writer.set_vocabulary(vocabulary, text::Casing::kUncased);
  TokenizedBlock block(writer.token_size_bytes(), 0);
  const int32_t unknown = vocabulary.unknown_id();
  block.add_sentence({unknown, 8, unknown});
  block.add_sentence({9, 10});
  block.add_sentence({unknown});
  block.end_document();
  block.close();
  writer.add(block);
  writer.finish(0, "sample", {"sample"});
  EXPECT_EQ(statistics_of(TokenStore(folder / "store")).unknown_tokens, 3u);
}

}  // namespace
}  // namespace onebit::corpus
