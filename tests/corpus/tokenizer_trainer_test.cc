#include "onebit/data/corpus/tokenizer_trainer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "onebit/data/text/tokenizer.h"
#include "onebit/data/tokenizer_files/tokenizer_files.h"
#include "onebit/ground/base/json.h"
#include "tests/base/message_of.h"
#include "tests/base/temporary_folder.h"

namespace onebit::corpus {
namespace {

using testing::HasSubstr;

constexpr const char* kText =
    "the cat sat on the mat, the cats sat: caf\u00e9s, caf\u00e9 9.5 9.25\n"
    "the end of the theme is the thesis\n";

std::string train(VocabularyKind kind, int32_t size, text::Casing casing = text::Casing::kCased,
                  std::string_view text = kText) {
  TokenizerTrainer trainer(kind, casing);
  trainer.add_text(text);
  return trainer.train(size, 1);
}

std::shared_ptr<const text::Vocabulary> opened(const std::string& json) {
  const TemporaryFolder folder;
  const Path path = folder / formats::kTokenizerJson;
  write_file_atomically(path, json);
  write_file_atomically(folder / formats::kTokenizerConfigJson, trained_tokenizer_config());
  return std::make_shared<const text::Vocabulary>(
      text::Vocabulary::from_parts(formats::read_tokenizer_with(path).vocabulary, "trained"));
}

std::vector<int32_t> ids_of(const std::shared_ptr<const text::Vocabulary>& vocabulary,
                            std::string_view text) {
  std::vector<int32_t> ids;
  text::Tokenizer(vocabulary, text::Casing::kCased).encode(text, ids);
  return ids;
}

// The merges of Hugging Face's BpeTrainer (tokenizers 0.23) on the same lines, with all bytes as
// initial alphabet and pairs that occur twice.
TEST(TokenizerTrainer, MergesTheBytePairsThatTheReferenceMerges) {
  const Json json = parse_json(train(VocabularyKind::kBytePairs, 290), "tokenizer.json");
  std::vector<std::string> merges;
  for (const Json& merge : json["model"]["merges"]) {
    merges.push_back(merge[0].get<std::string>() + " " + merge[1].get<std::string>());
  }
  EXPECT_EQ(merges,
            (std::vector<std::string>{"h e", "t he", "\u0120 the", "a t", "\u0120 c", "a f", "i s",
                                      "s at", "\u00c3 \u00a9", "\u0120 9", "\u0120 o", "\u0120 sat",
                                      "\u0120c at", "\u0120c af", "\u0120caf \u00c3\u00a9"}));
  EXPECT_EQ(json["model"]["vocab"].size(), 5u + 256 + 15);
}

TEST(TokenizerTrainer, MakesTokenizersThatKnowTheirText) {
  for (const VocabularyKind kind : {VocabularyKind::kBytePairs, VocabularyKind::kUnigram}) {
    const auto vocabulary = opened(train(kind, kind == VocabularyKind::kUnigram ? 60 : 276));
    ASSERT_NE(vocabulary->pipeline(), nullptr);
    EXPECT_EQ(vocabulary->pad_id(), 0);
    EXPECT_EQ(vocabulary->unknown_id(), 1);
    EXPECT_EQ(vocabulary->cls_id(), 2);
    EXPECT_EQ(vocabulary->sep_id(), 3);
    EXPECT_EQ(vocabulary->mask_id(), 4);
    EXPECT_EQ(vocabulary->pair_template(), text::PairTemplate());
    EXPECT_EQ(vocabulary->second_segment(), 1);
    const std::vector<int32_t> ids = ids_of(vocabulary, "the caf\u00e9s sat");
    EXPECT_EQ(std::count(ids.begin(), ids.end(), vocabulary->unknown_id()), 0);
    EXPECT_LT(ids.size(), 12u);
    EXPECT_EQ(ids_of(vocabulary, "the [MASK] sat").at(1), vocabulary->mask_id());
  }
}

TEST(TokenizerTrainer, NormalisesAsTheCasingSays) {
  for (const VocabularyKind kind : {VocabularyKind::kBytePairs, VocabularyKind::kUnigram}) {
    const int32_t size = kind == VocabularyKind::kUnigram ? 60 : 276;
    const auto uncased = opened(train(kind, size, text::Casing::kUncased));
    EXPECT_EQ(ids_of(uncased, "THE CAF\u00c9"), ids_of(uncased, "the cafe"));
    const auto lower = opened(train(kind, size, text::Casing::kLowerCased));
    EXPECT_EQ(ids_of(lower, "THE CAF\u00c9"), ids_of(lower, "the caf\u00e9"));
    EXPECT_NE(ids_of(lower, "the caf\u00e9"), ids_of(lower, "the cafe"));
    const auto cased = opened(train(kind, size));
    EXPECT_NE(ids_of(cased, "THE CAT"), ids_of(cased, "the cat"));
  }
}

TEST(TokenizerTrainer, DependsOnCountsAlone) {
  for (const VocabularyKind kind : {VocabularyKind::kBytePairs, VocabularyKind::kUnigram}) {
    TokenizerTrainer first(kind, text::Casing::kCased), second(kind, text::Casing::kCased);
    second.add_text("the end of the theme is the thesis\n");
    first.add_text("the cat sat on the mat, the cats sat: caf\u00e9s, caf\u00e9 9.5 9.25\n");
    second.merge(first);
    EXPECT_EQ(second.train(280, 3), train(kind, 280));
  }
}

TEST(TokenizerTrainer, ASpecialTokenInTheTextIsNoPiece) {
  std::string text;
  for (int i = 0; i < 50; ++i) text += "[CLS] [CLS] x[CLS]x\n";
  const Json json = parse_json(train(VocabularyKind::kBytePairs, 400, text::Casing::kCased, text),
                               "tokenizer.json");
  for (const Json& merge : json["model"]["merges"]) {
    const auto joined = merge[0].get<std::string>() + merge[1].get<std::string>();
    EXPECT_TRUE(json["model"]["vocab"].contains(joined)) << joined;
  }
  EXPECT_EQ(json["model"]["vocab"]["[CLS]"], 2);
}

TEST(TokenizerTrainer, RefusesWhatCannotBe) {
  EXPECT_THAT(message_of([] { train(VocabularyKind::kBytePairs, 260); }),
              HasSubstr("use at least 261"));
  EXPECT_THAT(message_of([] { train(VocabularyKind::kUnigram, 5); }), HasSubstr("no room"));
  EXPECT_THAT(message_of([] { train(VocabularyKind::kUnigram, 50, text::Casing::kCased, ""); }),
              HasSubstr("the text is empty"));
}

}  // namespace
}  // namespace onebit::corpus
