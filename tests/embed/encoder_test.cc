#include "onebit/apps/embed/encoder.h"

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

class EncoderTest : public ::testing::Test {
 protected:
  EncoderTest() {
    const auto vocabulary = corpus::TokenStore(corpus_.train()).vocabulary();
    shape_ = finetune::odd_shape(vocabulary->size());
    finetune::write_model(folder(), shape_, vocabulary);
  }
  Path folder() const { return corpus_.folder("bert"); }
  void describe(const formats::SentenceFiles& files) {
    formats::write_sentence_files(folder(), files, shape_.hidden_size);
  }
  std::vector<float> vector_of(const std::string& text, const EncoderOptions& options) {
    Encoder encoder(context_, folder(), options);
    return encoder.vectors({text});
  }

  finetune::SmallCorpus corpus_;
  model::EncoderConfig shape_;
  Context context_ = Context::cpu(1);
};

TEST_F(EncoderTest, APromptIsPutBeforeEveryText) {
  describe({.prompts = {{"query", "the king "}, {"document", ""}}});
  const std::vector<float> plain = vector_of("went home", {});
  const std::vector<float> prompted = vector_of("the king went home", {});
  EXPECT_NE(plain, prompted);
  EXPECT_EQ(vector_of("went home", {.prompt = "query"}), prompted);
  EXPECT_EQ(vector_of("went home", {.prompt = "the king "}), prompted);
  EXPECT_EQ(vector_of("went home", {.prompt = "document"}), plain);
  EXPECT_THAT(Encoder(context_, folder(), {}).prompt_names(), ElementsAre("query"));

  describe({.prompts = {{"query", "the king "}}, .default_prompt = "query"});
  EXPECT_EQ(vector_of("went home", {}), prompted);
  EXPECT_EQ(vector_of("went home", {.prompt = ""}), plain);

  describe({.prompts = {{"query", "the king "}}, .pools_prompt = false});
  EXPECT_EQ(vector_of("went home", {}), plain);
  const std::vector<float> rest = vector_of("went home", {.prompt = "query"});
  EXPECT_NE(rest, plain);
  EXPECT_NE(rest, prompted);
  // The tokens of the prompt, [CLS] among them.
  Context context = Context::cpu(1);
  EXPECT_EQ(Encoder(context, folder(), {}).left_out_of("the king "), 3);
  EXPECT_EQ(Encoder(context, folder(), {}).left_out_of(""), 0);
  EXPECT_THAT(message_of([&] { vector_of("home", {.max_sequence_length = 3, .prompt = "query"}); }),
              HasSubstr("include_prompt"));
}

TEST_F(EncoderTest, DenseLayersAndDimensionsMakeShorterVectors) {
  const int64_t hidden = shape_.hidden_size;
  const std::vector<float> plain = vector_of("went home", {.normalize = false});
  formats::DenseModule dense{.inputs = 2 * hidden,
                             .outputs = 3,
                             .activation = formats::DenseActivation::kIdentity,
                             .weight = std::vector<float>(static_cast<size_t>(6 * hidden), 0)};
  // The first numbers of the second part, the mean.
  for (int64_t i = 0; i < 3; ++i) dense.weight[static_cast<size_t>((2 * i + 1) * hidden + i)] = 2;
  using enum formats::SentencePooling;
  formats::SentenceFiles files{.pooling = {kFirst, kMean}, .dense = {dense}, .normalize = false};
  describe(files);
  const std::vector<float> made = vector_of("went home", {});
  ASSERT_EQ(made.size(), 3u);
  for (size_t i = 0; i < made.size(); ++i) EXPECT_NEAR(made[i], 2 * plain[i], 1e-5);
  EXPECT_THAT(Encoder(context_, folder(), {.dimensions = 2}).description(),
              HasSubstr("first and mean of at most"));

  std::vector<float> cut = {made[0], made[1]};
  EXPECT_EQ(vector_of("went home", {.dimensions = 2}), cut);
  to_unit_length(cut.data(), 2, cut.data());
  EXPECT_EQ(vector_of("went home", {.normalize = true, .dimensions = 2}), cut);
  files.dimensions = 2;
  files.normalize = true;
  std::filesystem::remove_all(folder() / "3_Normalize");
  describe(files);
  EXPECT_EQ(vector_of("went home", {.dimensions = 2}), cut);
  EXPECT_EQ(vector_of("went home", {.normalize = true}), cut);
  // Without a wish, as sentence-transformers: first normalized and then cut.
  std::vector<float> unit(3);
  to_unit_length(made.data(), 3, unit.data());
  EXPECT_EQ(vector_of("went home", {}), (std::vector<float>{unit[0], unit[1]}));
  EXPECT_EQ(vector_of("went home", {.dimensions = 3}).size(), 3u);
  for (const int64_t wrong : {0, 4}) {
    EXPECT_THAT(message_of([&] { vector_of("a", {.dimensions = wrong}); }),
                HasSubstr("its vectors have 3 numbers"));
  }
  EXPECT_THAT(message_of([&] { vector_of("a", {.pooling = std::vector{kMean}}); }),
              HasSubstr("the Dense module reads vectors of"));
}

// A folder of sentence-transformers is cut where sentence-transformers cuts it.
TEST_F(EncoderTest, TheLengthIsThatOfTheModel) {
  const auto length = [&](const EncoderOptions& options) {
    const std::string text = Encoder(context_, folder(), options).description();
    return std::stoll(text.substr(text.find("at most ") + 8));
  };
  EXPECT_EQ(length({}), shape_.max_positions);
  describe({.max_sequence_length = 7});
  EXPECT_EQ(length({}), 7);
  EXPECT_EQ(length({.max_sequence_length = 9}), 9);
  describe({.max_sequence_length = 2});
  EXPECT_THAT(message_of([&] { length({}); }), HasSubstr("`max_seq_length`"));
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
