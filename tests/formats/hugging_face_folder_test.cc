#include "onebit/data/formats/hugging_face_folder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "onebit/data/formats/open_checkpoint.h"
#include "onebit/data/text/vocabulary.h"
#include "onebit/ground/base/json.h"
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
  put(folder / "vocab.txt", "0\n1\n2\n3\n4\n5\n");
  put(folder / "added_tokens.json", R"({"<e>": 6})");
  EXPECT_THAT(message_of([&] { read_hugging_face_folder(folder.path()); }),
              HasSubstr("the added token \"<e>\" has the id 6, and the model has no row for it "
                        "(vocab_size is 6)"));
}

TEST(HuggingFaceFolder, ACrossEncodersActivationIsKept) {
  TemporaryFolder folder;
  HuggingFaceFolder content = small();
  content.config.architecture = "BertForSequenceClassification";
  content.config.labels = {"LABEL_0"};
  for (const auto activation : {ScoreActivation::kSigmoid, ScoreActivation::kIdentity}) {
    content.config.score_activation = activation;
    put(folder / "config.json", encoder_config_text(content.config));
    EXPECT_EQ(score_activation_beside(folder / "config.json", content.config.architecture, 1),
              activation);
    EXPECT_EQ(score_activation_beside(folder / "config.json", "BertModel", 1), std::nullopt);
  }
  put(folder / "config_sentence_transformers.json",
      R"({"model_type": "CrossEncoder", "activation_fn": "torch.nn.Sigmoid"})");
  // sentence-transformers 6.2 reads that file only where there is a list of modules.
  EXPECT_EQ(score_activation_beside(folder / "config.json", content.config.architecture, 1),
            ScoreActivation::kIdentity);
  put(folder / "modules.json", "[]");
  EXPECT_EQ(score_activation_beside(folder / "config.json", content.config.architecture, 1),
            ScoreActivation::kSigmoid);
}

// transformers loads any class from a config that names none.
TEST(HuggingFaceFolder, WithoutArchitecturesTheTensorsTell) {
  const std::vector<float> values = {1, 2, 3, 4};
  const auto architecture = [&](const Json& named, std::vector<std::string> tensors,
                                const char* family) {
    const TemporaryFolder folder;
    HuggingFaceFolder content = small();
    content.config = config_of_family(family);
    content.config.vocab_size = 6;
    content.config.architecture = "BertModel";
    std::vector<NamedTensor> named_tensors;
    for (const std::string& name : tensors) named_tensors.push_back({name, values.data(), {2, 2}});
    write_hugging_face_folder(folder.path(), content, std::move(named_tensors));
    Json config = read_json(folder / "config.json");
    config["architectures"] = named;
    put(folder / "config.json", config.dump());
    return read_hugging_face_folder(folder.path()).config.architecture;
  };
  const std::string words = "bert.embeddings.word_embeddings.weight";
  const std::string pooler = "bert.pooler.dense.weight", head = "classifier.weight";
  for (const Json& none : {Json(), Json::array()}) {
    EXPECT_EQ(architecture(none, {words, pooler, head}, "bert"), "BertForSequenceClassification");
    EXPECT_EQ(architecture(none, {words, head}, "bert"), "BertForTokenClassification");
    EXPECT_EQ(architecture(none, {words, "qa_outputs.weight"}, "bert"), "BertForQuestionAnswering");
    EXPECT_EQ(architecture(none, {words, pooler}, "bert"), "BertForPreTraining");
    EXPECT_EQ(architecture(none, {words, pooler, head}, "distilbert"),
              "BertForSequenceClassification");
    EXPECT_EQ(architecture(none, {words, head}, "electra"), "BertForTokenClassification");
  }
  EXPECT_EQ(architecture(Json::array({"BertModel"}), {words, pooler, head}, "bert"), "BertModel");
}

// MPNet takes the id 1 for padding, whatever its config says, and RoBERTa the pad_token_id: no
// position is counted for such a token in transformers.
TEST(HuggingFaceFolder, EveryTokenHasAPosition) {
  const auto message = [](const char* family, int64_t pad, std::vector<std::string> tokens) {
    text::VocabularyParts words{.tokens = std::move(tokens)};
    EncoderConfigFile config = config_of_family(family);
    config.pad_token_id = pad;
    if (config.family().positions_after_pad) config.choices.first_position = pad + 1;
    return message_of([&] { require_counted_tokens(config, words, "config.json"); });
  };
  const std::vector<std::string> bert = {"[PAD]", "[UNK]"}, other = {"[UNK]", "[PAD]"};
  EXPECT_THAT(message("mpnet", 0, bert),
              HasSubstr("config.json: in transformers a token of the id 1 has no position"));
  EXPECT_THAT(message("mpnet", 1, bert), HasSubstr("[UNK]"));
  EXPECT_EQ(message("mpnet", 0, other), "(no error)");
  EXPECT_EQ(message("mpnet", 1, {"[UNK]"}), "(no error)");
  EXPECT_THAT(message("roberta", 1, bert), HasSubstr("key `pad_token_id`"));
  EXPECT_EQ(message("roberta", 0, bert), "(no error)");
  EXPECT_EQ(message("bert", 1, bert), "(no error)");
}

}  // namespace
}  // namespace onebit::formats
