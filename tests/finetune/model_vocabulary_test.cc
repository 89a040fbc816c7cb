#include "onebit/training/finetune/model_vocabulary.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "onebit/data/corpus/prepare.h"
#include "onebit/data/corpus/token_store.h"
#include "onebit/data/text/vocabulary.h"
#include "onebit/ground/base/json.h"
#include "tests/base/message_of.h"
#include "tests/finetune/model_folders.h"
#include "tests/finetune/small_corpus.h"

namespace onebit::finetune {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

class ModelVocabularyTest : public testing::Test {
 protected:
  ModelVocabularyTest() : store_(corpus_.train()) {
    write_model(model(), odd_shape(store_.vocabulary()->size()), store_.vocabulary());
  }

  Path model() const { return corpus_.folder("bert"); }
  void write(const Path& path, const std::string& text) const { write_file_atomically(path, text); }
  VocabularyOwner owner(std::vector<std::string> tokens) const {
    return {.what = "the model",
            .path = "bert",
            .vocabulary = std::make_shared<text::Vocabulary>(
                text::Vocabulary::from_tokens(std::move(tokens), "t"))};
  }
  std::vector<std::string> tokens() const {
    std::vector<std::string> all;
    for (int32_t id = 0; id < store_.vocabulary()->size(); ++id) {
      all.push_back(store_.vocabulary()->token(id));
    }
    return all;
  }

  SmallCorpus corpus_;
  corpus::TokenStore store_;
};

TEST_F(ModelVocabularyTest, ComesFromModelsAndStores) {
  for (const Path& path : {model(), corpus_.train()}) {
    const corpus::ModelVocabulary found = read_model_vocabulary(path);
    EXPECT_FALSE(text::difference(*found.tokens, *store_.vocabulary())) << path;
    EXPECT_EQ(found.casing, text::Casing::kUncased);
  }
  EXPECT_THAT(message_of([&] { read_model_vocabulary(corpus_.folder("nowhere")); }),
              HasSubstr("neither a model folder"));
}

TEST_F(ModelVocabularyTest, ATokenizerHasTheCasingOfTheModelOrOfTheWords) {
  EXPECT_EQ(read_tokenizer(model(), std::nullopt).casing(), text::Casing::kUncased);
  EXPECT_EQ(read_tokenizer(model(), text::Casing::kCased).casing(), text::Casing::kCased);
  const Path path = corpus_.folder("vocab.txt");
  write(path, "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\nAda\nLondon\n");
  text::Tokenizer tokenizer = read_tokenizer(path, std::nullopt);
  EXPECT_EQ(tokenizer.casing(), text::Casing::kCased);
  std::vector<int32_t> ids;
  tokenizer.encode("Ada London", ids);
  EXPECT_EQ(ids, (std::vector<int32_t>{5, 6}));
}

TEST_F(ModelVocabularyTest, ComesFromATokenizerJson) {
  const Path path = corpus_.folder("tokenizer.json");
  const std::string vocabulary =
      R"("model": {"vocab": {"[PAD]": 0, "[UNK]": 1, "[CLS]": 2, "[SEP]": 3, "[MASK]": 4, "a": 5}})";
  write(path,
        R"({"normalizer": {"type": "BertNormalizer", "lowercase": false},
            "pre_tokenizer": {"type": "BertPreTokenizer"}, )" +
            vocabulary + "}");
  EXPECT_EQ(read_model_vocabulary(path).tokens->size(), 6);
  EXPECT_EQ(read_model_vocabulary(path).casing, text::Casing::kCased);
  write(path, "{" + vocabulary + "}");
  EXPECT_THAT(message_of([&] { read_model_vocabulary(path); }),
              HasSubstr("key `normalizer` is none"));
}

// A model's added tokens are in its folder, in a store made with its vocabulary, and in the folder
// of a model that is written again.
TEST_F(ModelVocabularyTest, AddedTokensArePassedOn) {
  text::VocabularyParts parts = store_.vocabulary()->parts();
  const int32_t next = store_.vocabulary()->size();
  parts.added = {{.id = next, .content = "covid19", .normalized = true},
                 {.id = next + 1, .content = "[ENT]", .special = true}};
  const auto vocabulary =
      std::make_shared<const text::Vocabulary>(text::Vocabulary::from_parts(parts, "test"));
  const Path folder = corpus_.folder("extended");
  write_model(folder, odd_shape(next + 2), vocabulary);
  const corpus::ModelVocabulary found = read_model_vocabulary(folder);
  EXPECT_EQ(found.tokens->parts(), vocabulary->parts());
  EXPECT_EQ(found.tokens->checksum(), vocabulary->checksum());

  corpus::PrepareOptions options;
  options.inputs = {corpus_.folder("in.txt")};
  write(options.inputs[0], "Covid19 [ENT]\ncovid19\n");
  options.output = corpus_.folder("extended_store");
  options.model_vocabulary = found;
  options.format = corpus::TextFormat::kLines;
  corpus::prepare(options);
  const corpus::TokenStore store(options.output);
  EXPECT_EQ(store.vocabulary()->parts(), vocabulary->parts());
  ASSERT_EQ(store.tokens(), 3u);
  std::vector<int32_t> ids(3);
  store.copy_tokens(0, 3, ids.data());
  EXPECT_EQ(ids, (std::vector<int32_t>{next, next + 1, next}));
  EXPECT_EQ(read_model_vocabulary(options.output).tokens->parts(), vocabulary->parts());
  // Without its manifest's tokens it would be another vocabulary.
  Json manifest = read_json(options.output / "manifest.json");
  manifest.erase("added_tokens");
  manifest.erase("special_tokens");
  write(options.output / "manifest.json", manifest.dump());
  EXPECT_THAT(message_of([&] { corpus::TokenStore(options.output); }),
              HasSubstr("is not the vocabulary"));
}

TEST_F(ModelVocabularyTest, ATokenizerThatKeepsIdeographsTogetherIsRefused) {
  write(model() / "tokenizer_config.json",
        R"({"do_lower_case": true, "tokenize_chinese_chars": false})");
  EXPECT_THAT(message_of([&] { read_model_vocabulary(model()); }),
              HasSubstr("tokenize_chinese_chars"));
}

TEST_F(ModelVocabularyTest, LowerCasedTextKeepsItsAccentsIfTheModelSaysSo) {
  write(model() / "tokenizer_config.json", R"({"do_lower_case": true, "strip_accents": false})");
  const corpus::ModelVocabulary found = read_model_vocabulary(model());
  EXPECT_EQ(found.casing, text::Casing::kLowerCased);
  corpus::PrepareOptions options;
  options.inputs = {corpus_.folder("in.txt")};
  write(options.inputs[0], "a b\n");
  options.output = corpus_.folder("accented_store");
  options.model_vocabulary = found;
  options.format = corpus::TextFormat::kLines;
  corpus::prepare(options);
  EXPECT_EQ(read_model_vocabulary(options.output).casing, text::Casing::kLowerCased);
}

TEST_F(ModelVocabularyTest, AStoreOfAnotherLengthIsRefused) {
  std::vector<std::string> longer = tokens();
  require_vocabulary_of(owner(longer), store_);
  longer.emplace_back("more");
  EXPECT_THAT(message_of([&] { require_vocabulary_of(owner(longer), store_); }),
              AllOf(HasSubstr(fmt::format("id {} is \"more\" there and no token in the store, 1 of",
                                          longer.size() - 1)),
                    HasSubstr("`onebit prepare --vocab bert`")));
}

}  // namespace
}  // namespace onebit::finetune
