#include "onebit/apps/embed/text_encoder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "onebit/data/corpus/token_store.h"
#include "onebit/ground/base/json.h"
#include "tests/base/message_of.h"
#include "tests/finetune/model_folders.h"
#include "tests/finetune/small_corpus.h"

namespace onebit::embed {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

class TextEncoderTest : public ::testing::Test {
 protected:
  TextEncoderTest() {
    const auto vocabulary = corpus::TokenStore(corpus_.train()).vocabulary();
    shape_ = finetune::odd_shape(vocabulary->size());
    finetune::write_model(folder(), shape_, vocabulary);
  }
  Path folder() const { return corpus_.folder("bert"); }
  void describe(const formats::SentenceFiles& files) {
    formats::write_sentence_files(folder(), files, shape_.hidden_size);
  }
  std::vector<float> vector_of(const std::string& text, const TextEncoderOptions& options) {
    TextEncoder encoder(context_, folder(), options);
    finetune::Example example;
    example.text = text;
    return encoder.vectors(std::span(&example, 1));
  }

  finetune::SmallCorpus corpus_;
  model::EncoderConfig shape_;
  Context context_ = Context::cpu(1);
};

TEST_F(TextEncoderTest, APromptIsPutBeforeEveryText) {
  describe({.prompts = {{"query", "the king "}, {"document", ""}}});
  const std::vector<float> plain = vector_of("went home", {});
  const std::vector<float> prompted = vector_of("the king went home", {});
  EXPECT_NE(plain, prompted);
  EXPECT_EQ(vector_of("went home", {.prompt = "query"}), prompted);
  EXPECT_EQ(vector_of("went home", {.prompt = "the king "}), prompted);
  EXPECT_EQ(vector_of("went home", {.prompt = "document"}), plain);
  EXPECT_THAT(TextEncoder(context_, folder(), {}).prompt_names(), ElementsAre("query"));

  describe({.prompts = {{"query", "the king "}}, .default_prompt = "query"});
  EXPECT_EQ(vector_of("went home", {}), prompted);
  EXPECT_EQ(vector_of("went home", {.prompt = ""}), plain);

  describe({.prompts = {{"query", "the king "}}, .pools_prompt = false});
  EXPECT_EQ(vector_of("went home", {}), plain);
  EXPECT_THAT(message_of([&] { vector_of("went home", {.prompt = "query"}); }),
              HasSubstr("include_prompt"));
}

// A folder of sentence-transformers is cut where sentence-transformers cuts it.
TEST_F(TextEncoderTest, TheLengthIsThatOfTheModel) {
  const auto length = [&](const TextEncoderOptions& options) {
    const std::string text = TextEncoder(context_, folder(), options).description();
    return std::stoll(text.substr(text.find("at most ") + 8));
  };
  EXPECT_EQ(length({}), std::min<int64_t>(128, shape_.max_positions));
  describe({.max_sequence_length = 7});
  EXPECT_EQ(length({}), 7);
  EXPECT_EQ(length({.max_sequence_length = 9}), 9);
  describe({.max_sequence_length = 100'000});
  EXPECT_EQ(length({}), shape_.max_positions);
  describe({});
  EXPECT_EQ(length({}), shape_.max_positions);
  Json config = read_json(folder() / "tokenizer_config.json");
  config["model_max_length"] = 11;
  std::ofstream(folder() / "tokenizer_config.json") << config;
  EXPECT_EQ(length({}), 11);
}

}  // namespace
}  // namespace onebit::embed
