#include "onebit/data/corpus/store_writer.h"

#include <gtest/gtest.h>

#include <set>
#include <vector>

#include "onebit/ground/base/philox.h"

namespace onebit::corpus {
namespace {

using Document = std::vector<std::vector<int32_t>>;

bool add(SeenDocuments& seen, const Document& document) {
  for (const auto& sentence : document) seen.add_sentence(std::span<const int32_t>(sentence));
  return seen.end_document();
}

TEST(SeenDocuments, KnowsTokensAndWhereSentencesEnd) {
  SeenDocuments seen;
  const Document unlike[] = {{{1, 2, 3}}, {{1, 2}, {3}},  {{1}, {2, 3}},  {{3, 2, 1}},
                             {{1, 2}},    {{0, 1, 2, 3}}, {{1, 2, 3, 0}}, {{0}},
                             {{0, 0}},    {{0}, {0}}};
  for (const Document& document : unlike) EXPECT_FALSE(add(seen, document));
  for (const Document& document : unlike) EXPECT_TRUE(add(seen, document));
}

TEST(SeenDocuments, BothWidthsOfIdsAreTheSame) {
  SeenDocuments seen;
  EXPECT_FALSE(add(seen, {{7, 65535}}));
  const std::vector<uint16_t> narrow = {7, 65535};
  seen.add_sentence(std::span<const uint16_t>(narrow));
  EXPECT_TRUE(seen.end_document());
}

// Compares with a set of whole documents, many of which differ in only one token.
TEST(SeenDocuments, AgreesWithASetOfWholeDocuments) {
  RandomSequence random(1, 2, 3);
  SeenDocuments seen;
  std::set<Document> whole;
  int duplicates = 0;
  for (int i = 0; i < 20000; ++i) {
    Document document(1 + random.below(2));
    for (auto& sentence : document) {
      sentence.resize(1 + random.below(5));
      for (int32_t& id : sentence) id = static_cast<int32_t>(random.below(3));
    }
    const bool is_new = whole.insert(document).second;
    ASSERT_EQ(add(seen, document), !is_new);
    duplicates += is_new ? 0 : 1;
  }
  EXPECT_GT(duplicates, 1000);
  EXPECT_GT(whole.size(), 1000u);
}

}  // namespace
}  // namespace onebit::corpus
