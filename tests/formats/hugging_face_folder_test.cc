#include "onebit/data/formats/hugging_face_folder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "onebit/data/formats/open_checkpoint.h"
#include "onebit/data/text/vocabulary.h"
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
  content.vocabulary.tokens = {"[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "a"};
  content.tokenizer = TokenizerConfigFile{};
  return content;
}

TEST(HuggingFaceFolder, ReadsWhatItWrites) {
  TemporaryFolder folder;
  HuggingFaceFolder content = small();
  content.tokenizer->lower_case = false;
  content.tokenizer->strip_accents = true;
  content.tokenizer->model_max_length = 128;
  content.vocabulary = text::Vocabulary::from_parts(content.vocabulary, "small").parts();
  const std::vector<float> values = {1, 2, 3};
  write_hugging_face_folder(folder.path(), content, {{"x", values.data(), {3}}});
  EXPECT_EQ(folder.entries(), 6);
  const HuggingFaceFolder back = read_hugging_face_folder(folder.path());
  EXPECT_EQ(back.config, content.config);
  EXPECT_EQ(back.vocabulary, content.vocabulary);
  EXPECT_EQ(back.tokenizer, content.tokenizer);
  EXPECT_EQ(values_of(*open_hugging_face_tensors(folder.path()), "x"), values);
}

// A folder has the names, the keys and the class of its family. onebit has one name for a tensor.
TEST(HuggingFaceFolder, FamiliesHaveTheirOwnNames) {
  TemporaryFolder folder;
  HuggingFaceFolder content = small();
  content.config = config_of_family("distilbert");
  content.config.vocab_size = 6;
  content.config.architecture = "BertForSequenceClassification";
  const std::vector<float> words = {1, 2, 3}, query = {4, 5, 6}, dense = {7, 8};
  write_hugging_face_folder(
      folder.path(), content,
      {{"bert.embeddings.word_embeddings.weight", words.data(), {3, 1}},
       {"bert.encoder.layer.0.attention.self.query.weight", query.data(), {3}},
       {"bert.pooler.dense.bias", dense.data(), {2}}});
  const auto theirs = open_hugging_face_tensors(folder.path());
  EXPECT_EQ(values_of(*theirs, "distilbert.embeddings.word_embeddings.weight"), words);
  EXPECT_EQ(values_of(*theirs, "distilbert.transformer.layer.0.attention.q_lin.weight"), query);
  EXPECT_EQ(values_of(*theirs, "pre_classifier.bias"), dense);
  const auto ours = open_model(folder.path());
  EXPECT_EQ(values_of(*ours, "bert.embeddings.word_embeddings.weight"), words);
  EXPECT_EQ(values_of(*ours, "bert.encoder.layer.0.attention.self.query.weight"), query);
  EXPECT_EQ(values_of(*ours, "bert.pooler.dense.bias"), dense);
  EXPECT_EQ(read_hugging_face_folder(folder.path()).config.architecture,
            "BertForSequenceClassification");
  EXPECT_EQ(list_tensors(folder.path(), names_of(content.config))->ours.size(), 3u);
}

TEST(HuggingFaceFolder, AChangedFileIsNamed) {
  TemporaryFolder folder;
  const std::vector<float> values = {1, 2, 3};
  write_hugging_face_folder(folder.path(), small(), {{"x", values.data(), {3}}});
  EXPECT_THAT(changed_files(folder.path()), ElementsAre());
  require_unchanged(folder.path());
  put(folder / "vocab.txt", "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\nb\n");
  EXPECT_THAT(changed_files(folder.path()), ElementsAre("vocab.txt"));
  EXPECT_THAT(message_of([&] { require_unchanged(folder.path()); }),
              HasSubstr("vocab.txt is not as model.safetensors was written with"));
  std::filesystem::remove(folder / "config.json");
  EXPECT_THAT(changed_files(folder.path()), ElementsAre("vocab.txt", "config.json (missing)"));
  // Another program's file has no checksums.
  write_safetensors(folder / "model.safetensors", {{"x", values.data(), {3}}});
  EXPECT_THAT(changed_files(folder.path()), ElementsAre());
}

TEST(HuggingFaceFolder, WhatIsMissingIsNamed) {
  TemporaryFolder folder;
  EXPECT_THAT(message_of([&] { read_hugging_face_folder(folder / "no"); }),
              HasSubstr("no such folder"));
  EXPECT_THAT(message_of([&] { read_hugging_face_folder(folder.path()); }),
              HasSubstr("config.json"));
  put(folder / "config.json", encoder_config_text(small().config));
  EXPECT_THAT(message_of([&] { read_hugging_face_folder(folder.path()); }),
              HasSubstr("neither vocab.txt nor"));
  EXPECT_THAT(message_of([&] { open_hugging_face_tensors(folder.path()); }),
              HasSubstr("neither model.safetensors nor"));
  put(folder / "vocab.txt", "[PAD]\r\na\r\nb");
  const HuggingFaceFolder content = read_hugging_face_folder(folder.path());
  EXPECT_THAT(content.vocabulary.tokens, ElementsAre("[PAD]", "a", "b"));
  EXPECT_FALSE(content.tokenizer.has_value());
  put(folder / "vocab.txt", "0\n1\n2\n3\n4\n5\n6\n");
  EXPECT_THAT(message_of([&] { read_hugging_face_folder(folder.path()); }),
              HasSubstr("7 tokens, config.json has vocab_size 6"));
}

}  // namespace
}  // namespace onebit::formats
