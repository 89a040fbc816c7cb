// White space in vocabularies, settings that change no id, and what messages name.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <string>

#include "onebit/data/tokenizer_files/tokenizer_files.h"
#include "onebit/ground/base/json.h"
#include "tests/tokenizer_files/tokenizer_files_fixture.h"

namespace onebit::formats {
namespace {

using testing::HasSubstr;

// vocab.txt cannot tell "a" from "a ", and tokenizer.json beside it can.
TEST_F(TokenizerFilesTest, TokensThatEndWithWhiteSpaceAreThoseOfTokenizerJson) {
  Json json = combined();
  json["model"]["vocab"]["b\u00a0"] = 7;
  json["model"]["vocab"]["c "] = 8;
  write_json("tokenizer.json", json);
  write("vocab.txt", std::string(kWords) + "b\u00a0\nc\n");
  write("tokenizer_config.json", kLowerCase);
  const TokenizerFiles files = read();
  EXPECT_EQ(vocabulary().find("b"), 6);
  EXPECT_EQ(vocabulary().find("b\u00a0"), 7);
  EXPECT_EQ(vocabulary().find("c"), std::nullopt);
  for (const TextFile& file : tokenizer_files(files)) write(file.name, file.text);
  EXPECT_EQ(read().vocabulary.tokens, files.vocabulary.tokens);
  write("vocab.txt", std::string(kWords) + "b\u00a0\nd\n");
  EXPECT_THAT(error(), HasSubstr("id 8 is \"d\", in "));
}

// What changes no id, and somebody uses who loads the folder that onebit writes.
TEST_F(TokenizerFilesTest, WhatOthersUseIsWrittenBack) {
  write("vocab.txt", kWords);
  const char* members =
      R"({"do_lower_case": true, "padding_side": "left", "chat_template": "{{ messages }}",
          "clean_up_tokenization_spaces": false, "bos_token": "[CLS]"})";
  write("tokenizer_config.json", members);
  write("chat_template.jinja", "{% for m in messages %}\n");
  for (const TextFile& file : tokenizer_files(read())) write(file.name, file.text);
  const Json config = read_json(folder_ / "tokenizer_config.json");
  EXPECT_EQ(config.at("padding_side"), "left");
  EXPECT_EQ(config.at("chat_template"), "{{ messages }}");
  EXPECT_EQ(config.at("clean_up_tokenization_spaces"), false);
  EXPECT_EQ(config.at("bos_token"), "[CLS]");
  EXPECT_EQ(text::Vocabulary::from_parts(read().vocabulary, "test").parts().kept.files,
            (std::map<std::string, std::string>{{kChatTemplate, "{% for m in messages %}\n"}}));
}

// What is wrong may be the vocabulary or the name.
TEST_F(TokenizerFilesTest, AMissingSpecialTokenIsNamedWithItsRole) {
  write("vocab.txt", kWords);
  write("tokenizer_config.json", R"({"do_lower_case": true, "mask_token": "<mask>"})");
  EXPECT_THAT(error(), HasSubstr("no <mask> among 7 tokens, and an encoder needs its mask_token"));
  EXPECT_THAT(error(), HasSubstr("correct `mask_token` in tokenizer_config.json"));
  write("tokenizer_config.json", R"({"tokenizer_class": "BertTokeniser"})");
  EXPECT_THAT(error(), HasSubstr("is \"BertTokeniser\" (did you mean \"BertTokenizer\"?)"));
  write("tokenizer_config.json", R"({"tokenizer_class": "LlamaTokenizer"})");
  EXPECT_THAT(error(), HasSubstr("is \"LlamaTokenizer\"; onebit knows"));
}

// transformers 5.24 gives BertTokenizer's default to these classes, whatever do_lower_case says.
TEST_F(TokenizerFilesTest, TokenizersOfDprLowerCase) {
  write("vocab.txt", kWords);
  for (const std::string name : {"DPRContextEncoderTokenizer", "DPRQuestionEncoderTokenizer",
                                 "DPRReaderTokenizer", "DPRContextEncoderTokenizerFast"}) {
    const auto with = [&](const char* lower) {
      write("tokenizer_config.json",
            fmt::format(R"({{"tokenizer_class": "{}", "do_lower_case": {}}})", name, lower));
      return error();
    };
    EXPECT_EQ(with("true"), "(no error)") << name;
    EXPECT_EQ(read().vocabulary.has_segments, name != "DPRReaderTokenizer");
    if (name.ends_with("Fast")) {
      EXPECT_EQ(with("false"), "(no error)") << name;
    } else {
      EXPECT_THAT(with("false"), HasSubstr("lower-cases text in transformers 5")) << name;
    }
  }
}

}  // namespace
}  // namespace onebit::formats
