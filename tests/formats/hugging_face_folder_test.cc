#include "onebit/formats/hugging_face_folder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "onebit/text/vocabulary.h"
#include "tests/base/message_of.h"
#include "tests/base/temporary_folder.h"
#include "tests/formats/memory_source.h"

namespace onebit::formats {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

void put(const Path& path, const std::string& content) {
  std::ofstream(path, std::ios::binary) << content;
}

HuggingFaceFolder small() {
  HuggingFaceFolder content;
  content.config.vocab_size = 6;
  content.vocabulary = {"[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "a"};
  content.tokenizer = TokenizerConfigFile{};
  return content;
}

TEST(HuggingFaceFolder, ReadsWhatItWrites) {
  TemporaryFolder folder;
  HuggingFaceFolder content = small();
  content.tokenizer->lower_case = false;
  content.tokenizer->strip_accents = true;
  content.tokenizer->model_max_length = 128;
  content.tokenizer->mask_token = "<mask>";
  const std::vector<float> values = {1, 2, 3};
  write_hugging_face_folder(folder.path(), content, {{"x", ConstView::of(values.data(), {3})}});
  EXPECT_EQ(folder.entries(), 6);
  const HuggingFaceFolder back = read_hugging_face_folder(folder.path());
  EXPECT_EQ(back.config, content.config);
  EXPECT_EQ(back.vocabulary, content.vocabulary);
  EXPECT_EQ(back.tokenizer, content.tokenizer);
  EXPECT_EQ(values_of(*open_hugging_face_tensors(folder.path()), "x"), values);
}

TEST(HuggingFaceFolder, AChangedFileIsNamed) {
  TemporaryFolder folder;
  const std::vector<float> values = {1, 2, 3};
  write_hugging_face_folder(folder.path(), small(), {{"x", ConstView::of(values.data(), {3})}});
  EXPECT_THAT(changed_files(folder.path()), ElementsAre());
  require_unchanged(folder.path());
  put(folder / "vocab.txt", "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\nb\n");
  EXPECT_THAT(changed_files(folder.path()), ElementsAre("vocab.txt"));
  EXPECT_THAT(message_of([&] { require_unchanged(folder.path()); }),
              HasSubstr("vocab.txt is not as model.safetensors was written with"));
  std::filesystem::remove(folder / "config.json");
  EXPECT_THAT(changed_files(folder.path()), ElementsAre("vocab.txt", "config.json (missing)"));
  // Another program's file has no checksums.
  write_safetensors(folder / "model.safetensors", {{"x", ConstView::of(values.data(), {3})}});
  EXPECT_THAT(changed_files(folder.path()), ElementsAre());
}

TEST(HuggingFaceFolder, WhatIsMissingIsNamed) {
  TemporaryFolder folder;
  EXPECT_THAT(message_of([&] { read_hugging_face_folder(folder / "no"); }),
              HasSubstr("no such folder"));
  EXPECT_THAT(message_of([&] { read_hugging_face_folder(folder.path()); }),
              HasSubstr("config.json"));
  put(folder / "config.json", bert_config_text(small().config));
  EXPECT_THAT(message_of([&] { read_hugging_face_folder(folder.path()); }),
              HasSubstr("neither vocab.txt nor"));
  EXPECT_THAT(message_of([&] { open_hugging_face_tensors(folder.path()); }),
              HasSubstr("neither model.safetensors nor"));
  put(folder / "vocab.txt", "[PAD]\r\na\r\nb");
  const HuggingFaceFolder content = read_hugging_face_folder(folder.path());
  EXPECT_THAT(content.vocabulary, ElementsAre("[PAD]", "a", "b"));
  EXPECT_FALSE(content.tokenizer.has_value());
  put(folder / "vocab.txt", "0\n1\n2\n3\n4\n5\n6\n");
  EXPECT_THAT(message_of([&] { read_hugging_face_folder(folder.path()); }),
              HasSubstr("7 tokens, config.json has vocab_size 6"));
}

TEST(TokenizerFiles, Vocabulary) {
  TemporaryFolder folder;
  const auto error = [&](const std::string& text) {
    put(folder / "vocab.txt", text);
    return message_of([&] { read_vocabulary(folder.path()); });
  };
  EXPECT_THAT(error(""), HasSubstr("contains no tokens"));
  EXPECT_THAT(error("a\n\nb\n"), HasSubstr("vocab.txt:2: empty line"));
  EXPECT_THAT(error("a\nb\na\n"), HasSubstr("vocab.txt:3: token 'a' is already in line 1"));
}

// Uses the rule of token stores, because otherwise the two vocabularies would seem different.
TEST(TokenizerFiles, VocabularyIsWhatTextTakesItFor) {
  TemporaryFolder folder;
  const char* text = "[PAD]\r\n[UNK] \n[CLS]\t\n[SEP]\n[MASK]\na\n";
  put(folder / "vocab.txt", text);
  const std::vector<std::string> tokens = read_vocabulary(folder.path());
  EXPECT_THAT(tokens, ElementsAre("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "a"));
  EXPECT_EQ(text::Vocabulary::load(folder / "vocab.txt").checksum(),
            text::Vocabulary::from_tokens(tokens, "folder").checksum());
}

TEST(TokenizerFiles, CombinedFile) {
  TemporaryFolder folder;
  put(folder / "tokenizer.json", R"({"normalizer": {"type": "BertNormalizer", "lowercase": false,
    "strip_accents": null, "handle_chinese_chars": false},
    "model": {"type": "WordPiece", "vocab": {"b": 1, "a": 0}}})");
  EXPECT_THAT(read_vocabulary(folder.path()), ElementsAre("a", "b"));
  const auto config = read_tokenizer_config(folder.path());
  ASSERT_TRUE(config.has_value());
  EXPECT_FALSE(config->lower_case);
  EXPECT_FALSE(config->tokenize_chinese_chars);
  put(folder / "tokenizer_config.json", R"({"do_lower_case": true, "model_max_length": 1e30})");
  EXPECT_THAT(message_of([&] { read_tokenizer_config(folder.path()); }),
              HasSubstr("do_lower_case true, tokenizer.json has lowercase false"));
  put(folder / "tokenizer.json", R"({"model": {"vocab": {"b": 2, "a": 0}}})");
  EXPECT_THAT(message_of([&] { read_vocabulary(folder.path()); }), HasSubstr("the id of \"b\""));
  EXPECT_TRUE(read_tokenizer_config(folder.path())->lower_case);
}

TEST(TokenizerFiles, Config) {
  TemporaryFolder folder;
  put(folder / "tokenizer_config.json",
      R"({"do_lower_case": false, "tokenizer_class": "BertTokenizerFast",
          "mask_token": {"content": "<m>", "lstrip": false}})");
  EXPECT_EQ(read_tokenizer_config(folder.path())->mask_token, "<m>");
  put(folder / "tokenizer_config.json", R"({"tokenizer_class": "GPT2Tokenizer"})");
  EXPECT_THAT(message_of([&] { read_tokenizer_config(folder.path()); }),
              HasSubstr("it must be one of BertTokenizer"));
  put(folder / "tokenizer_config.json", R"({"model_max_length": 512})");
  EXPECT_FALSE(read_tokenizer_config(folder.path()).has_value());
}

}  // namespace
}  // namespace onebit::formats
