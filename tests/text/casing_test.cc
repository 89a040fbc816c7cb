#include "onebit/data/text/casing.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "onebit/data/text/vocabulary.h"

namespace onebit::text {
namespace {

CasingEvidence evidence_of(const std::vector<std::string>& words) {
  std::vector<std::string> tokens = {"[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "[unused1]"};
  tokens.insert(tokens.end(), words.begin(), words.end());
  return casing_of(Vocabulary::from_tokens(std::move(tokens), "words"));
}

TEST(VocabularyCasing, CapitalsShowIt) {
  EXPECT_EQ(evidence_of({"the", "##s"}), CasingEvidence::kUncased);
  EXPECT_EQ(evidence_of({"the", "The", "##S"}), CasingEvidence::kCased);
  EXPECT_EQ(evidence_of({"1", "!", "\xe4\xb8\xad"}), CasingEvidence::kUnclear);
}

TEST(VocabularyCasing, ACapitalOrTwoAmongHundredsShowNothing) {
  std::vector<std::string> words;
  for (int i = 0; i < 200; ++i) words.push_back(fmt::format("word{}", i));
  words.emplace_back("I");
  EXPECT_EQ(evidence_of(words), CasingEvidence::kUnclear);
  words.insert(words.end(), {"A", "B"});
  EXPECT_EQ(evidence_of(words), CasingEvidence::kCased);
}

}  // namespace
}  // namespace onebit::text
