// Stores of tokenizers that are no WordPiece.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "onebit/data/corpus/prepare.h"
#include "onebit/data/corpus/token_store.h"
#include "onebit/data/text/tokenizer.h"
#include "onebit/data/tokenizer_files/tokenizer_files.h"
#include "onebit/ground/base/json.h"
#include "tests/base/message_of.h"
#include "tests/base/temporary_folder.h"

namespace onebit::corpus {
namespace {

using testing::AllOf;
using testing::HasSubstr;

// The parameter is the name of the golden.
class PrepareOtherTokenizers : public testing::TestWithParam<const char*> {
 protected:
  PrepareOptions other_options(const std::string& text) {
    const Path file =
        Path(ONEBIT_SOURCE_DIR) / "tests/formats/golden/pipelines" / GetParam() / "tokenizer.json";
    write_file_atomically(folder_ / "in.txt", text);
    PrepareOptions made;
    made.inputs = {folder_ / "in.txt"};
    made.output = folder_ / "store";
    made.threads = 3;
    made.model_vocabulary = {
        .tokens = std::make_shared<const text::Vocabulary>(text::Vocabulary::from_parts(
            formats::read_tokenizer_with(file).vocabulary, file.string())),
        .place = file.string()};
    made.format = TextFormat::kProse;
    return made;
  }

  TemporaryFolder folder_;
};

TEST_P(PrepareOtherTokenizers, SentencesOfAStoreAreTheTokensOfRunningText) {
  const std::string text = "The King said: we go. Who went home? \u00C9lan vital, 12 x.";
  const PrepareOptions given = other_options(text + "\n");
  prepare(given);
  const TokenStore store(folder_ / "store");
  EXPECT_EQ(store.documents(), 1u);
  EXPECT_GE(store.sentences(), 3u);
  EXPECT_EQ(store.casing(), text::Casing::kCased);
  ASSERT_NE(store.vocabulary()->pipeline(), nullptr);
  EXPECT_EQ(store.vocabulary()->checksum(), given.model_vocabulary->tokens->checksum());
  std::vector<int32_t> expected, found(store.tokens());
  text::Tokenizer(given.model_vocabulary->tokens, text::Casing::kCased).encode(text, expected);
  store.copy_tokens(0, found.size(), found.data());
  EXPECT_EQ(found, expected);
  store.verify();
}

TEST_P(PrepareOtherTokenizers, HaveRulesOfTheirOwnForCapitals) {
  PrepareOptions given = other_options("The king said.\n");
  given.casing = text::Casing::kUncased;
  EXPECT_THAT(message_of([&] { prepare(given); }),
              AllOf(HasSubstr("tokenizer.json"), HasSubstr("remove --uncased")));
}

TEST_P(PrepareOtherTokenizers, AreReadFromFilesOfTheStoreAlone) {
  prepare(other_options("The king said.\n"));
  const Path manifest = folder_ / "store" / kManifestName;
  Json json = read_json(manifest);
  EXPECT_EQ(json["tokenizer_files"], Json::array({"tokenizer.json"}));
  const auto error_with = [&](const Json& files) {
    json["tokenizer_files"] = files;
    write_file_atomically(manifest, json_text(json, 2));
    return message_of([&] { TokenStore(folder_ / "store"); });
  };
  EXPECT_THAT(error_with(Json::array({"tokenizer.json", "../vocab.txt"})),
              AllOf(HasSubstr("tokenizer_files"), HasSubstr("../vocab.txt")));
  EXPECT_THAT(error_with(Json::array({"tokenizer_config.json"})),
              HasSubstr("lacks tokenizer.json"));
  EXPECT_THAT(error_with(Json::array()), HasSubstr("lacks tokenizer.json"));
  EXPECT_THAT(error_with(Json(7)), HasSubstr("not a list"));
}

INSTANTIATE_TEST_SUITE_P(Kinds, PrepareOtherTokenizers,
                         testing::Values("unigram", "bytes", "byte-fallback"),
                         [](const auto& chosen) {
                           std::string name = chosen.param;
                           std::erase(name, '-');
                           return name;
                         });

TEST(PrepareLearnedTokenizers, AreInTheStore) {
  for (const VocabularyKind kind : {VocabularyKind::kUnigram, VocabularyKind::kBytePairs}) {
    const TemporaryFolder folder;
    std::string text;
    for (int i = 0; i < 40; ++i) text += fmt::format("The king said {}.\nThe queens\nwent.\n\n", i);
    write_file_atomically(folder / "in.txt", text);
    PrepareOptions given;
    given.inputs = {folder / "in.txt"};
    given.output = folder / "store";
    given.vocabulary_size = 300;
    given.vocabulary_kind = kind;
    given.format = TextFormat::kDocuments;
    given.threads = 3;
    prepare(given);
    const TokenStore store(given.output);
    store.verify();
    EXPECT_EQ(store.documents(), 40u);
    ASSERT_NE(store.vocabulary()->pipeline(), nullptr);
    EXPECT_FALSE(std::filesystem::exists(given.output / kVocabularyName));
    // The end of a line is a blank.
    std::vector<int32_t> expected;
    text::Tokenizer(store.vocabulary(), text::Casing::kCased)
        .encode("The king said 7. The queens went.", expected);
    const uint64_t begin = store.sentence_begin(store.document_begin(7));
    std::vector<int32_t> found(store.sentence_begin(store.document_begin(8)) - begin);
    store.copy_tokens(begin, found.size(), found.data());
    EXPECT_EQ(found, expected);
  }
}

}  // namespace
}  // namespace onebit::corpus
