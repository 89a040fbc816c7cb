#include "onebit/formats/tokenizer_files.h"

#include <gtest/gtest.h>

#include "onebit/base/json.h"
#include "tests/base/message_of.h"

namespace onebit::formats {
namespace {

// transformers wrote the golden file for the same vocabulary (tools/make_checkpoint_goldens.py).
TEST(TokenizerJson, IsThatOfTransformers) {
  const Path golden = Path(ONEBIT_SOURCE_DIR) / "tests/formats/golden/bert";
  const std::vector<std::string> vocabulary = read_vocabulary(golden);
  const auto config = read_tokenizer_config(golden);
  ASSERT_TRUE(config.has_value());
  EXPECT_EQ(tokenizer_json_text(vocabulary, *config), read_file(golden / "tokenizer.json"));
}

TEST(TokenizerJson, IsReadBack) {
  const std::vector<std::string> vocabulary = {"the",   "[UNK]", "[SEP]", "\"q\\",
                                               "[CLS]", "ü",     "[PAD]", "[MASK]"};
  TokenizerConfigFile config;
  config.lower_case = false;
  config.strip_accents = true;
  config.tokenize_chinese_chars = false;
  const Json json = parse_json(tokenizer_json_text(vocabulary, config), "tokenizer.json");
  EXPECT_EQ(parse_word_piece_vocabulary(json, "tokenizer.json"), vocabulary);
  EXPECT_EQ(parse_tokenizer_json(json, "tokenizer.json"), config);
  EXPECT_EQ(json.at("post_processor").at("special_tokens").at("[CLS]").at("ids"), Json::array({4}));
  EXPECT_EQ(json.at("added_tokens").size(), 5u);
}

TEST(TokenizerFiles, SettingsThatOnebitDoesNotFollowAreRefused) {
  TokenizerConfigFile config;
  EXPECT_EQ(casing_of(config, "bert"), text::Casing::kUncased);
  config.strip_accents = true;  // what lower-casing does anyway
  EXPECT_EQ(casing_of(config, "bert"), text::Casing::kUncased);
  config.strip_accents = false;
  const std::string accents = message_of([&] { casing_of(config, "bert"); });
  EXPECT_EQ(accents.find("bert: its tokenizer keeps accents while it lower-cases"), 0u) << accents;
  config.lower_case = false;
  EXPECT_EQ(casing_of(config, "bert"), text::Casing::kCased);
  config.strip_accents = true;
  EXPECT_NE(message_of([&] { casing_of(config, "bert"); }).find("strip_accents"),
            std::string::npos);
  config.strip_accents.reset();
  config.tokenize_chinese_chars = false;
  EXPECT_NE(message_of([&] { casing_of(config, "bert"); }).find("tokenize_chinese_chars"),
            std::string::npos);
}

}  // namespace
}  // namespace onebit::formats
