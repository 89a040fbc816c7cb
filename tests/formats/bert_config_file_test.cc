#include "onebit/data/formats/bert_config_file.h"
#include "onebit/ground/base/json.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/base/message_of.h"

namespace onebit::formats {
namespace {

using ::testing::HasSubstr;

BertConfigFile parse(const std::string& text) {
  return parse_bert_config(parse_json(text, "config.json"), "config.json");
}

TEST(BertConfigFile, RoundTrip) {
  BertConfigFile config;
  config.architecture = "BertForSequenceClassification";
  config.pre_layer_norm = true;
  config.vocab_size = 100;
  config.hidden_size = 24;
  config.num_hidden_layers = 3;
  config.num_attention_heads = 4;
  config.intermediate_size = 50;
  config.max_position_embeddings = 33;
  config.type_vocab_size = 3;
  config.hidden_act = GeluForm::kTanh;
  config.hidden_dropout_prob = 0.2;
  config.attention_probs_dropout_prob = 0.0;
  config.classifier_dropout = 0.3;
  config.layer_norm_eps = 1e-7;
  config.initializer_range = 0.03;
  config.pad_token_id = 5;
  config.torch_dtype = DType::kBF16;
  config.labels = {"no", "yes", "neither"};
  config.problem_type = "multi_label_classification";
  config.may_be_unanswerable = true;
  EXPECT_EQ(parse(bert_config_text(config)), config);
  config.may_be_unanswerable = false;
  EXPECT_EQ(parse(bert_config_text(config)), config);
  EXPECT_EQ(parse(bert_config_text({})), BertConfigFile{});
}

TEST(BertConfigFile, GooglesFile) {
  const BertConfigFile config = parse(R"({"attention_probs_dropout_prob": 0.1, "hidden_act": "gelu",
    "hidden_dropout_prob": 0.1, "hidden_size": 1024, "initializer_range": 0.02,
    "intermediate_size": 4096, "max_position_embeddings": 512, "num_attention_heads": 16,
    "num_hidden_layers": 24, "type_vocab_size": 2, "vocab_size": 30522})");
  EXPECT_EQ(config.num_hidden_layers, 24);
  EXPECT_EQ(config.hidden_act, GeluForm::kErf);
  EXPECT_EQ(config.layer_norm_eps, 1e-12);
}

// The error of the default config with one key replaced.
std::string error_with(const std::string& key, const Json& value) {
  Json config = Json::parse(bert_config_text({}));
  config[key] = value;
  return message_of([&] { parse_bert_config(config, "config.json"); });
}

TEST(BertConfigFile, ActivationNames) {
  for (const char* name : {"gelu_new", "gelu_pytorch_tanh", "gelu_fast"}) {
    Json config = Json::parse(bert_config_text({}));
    config["hidden_act"] = name;
    EXPECT_EQ(parse_bert_config(config, "c").hidden_act, GeluForm::kTanh) << name;
  }
  EXPECT_THAT(error_with("hidden_act", "relu"), HasSubstr("one of gelu, gelu_new"));
}

TEST(BertConfigFile, TypesOfTheFilesTensors) {
  const auto type = [](const std::string& name) {
    Json config = Json::parse(bert_config_text({}));
    config["torch_dtype"] = name;
    return parse_bert_config(config, "c").torch_dtype;
  };
  // Doubles are read as floats.
  for (const char* name : {"float64", "torch.float64", "float32", "torch.float32", "auto"}) {
    EXPECT_EQ(type(name), DType::kF32) << name;
  }
  EXPECT_EQ(type("bfloat16"), DType::kBF16);
  EXPECT_EQ(type("torch.bfloat16"), DType::kBF16);
  EXPECT_EQ(type("torch.float16"), DType::kF16);
}

TEST(BertConfigFile, WhatThisBertCannotBe) {
  EXPECT_THAT(error_with("model_type", "roberta"),
              HasSubstr("config.json: key `model_type` is \"roberta\"; onebit reads \"bert\""));
  EXPECT_THAT(error_with("position_embedding_type", "relative_key"), HasSubstr("absolute"));
  EXPECT_THAT(error_with("is_decoder", true), HasSubstr("is an encoder"));
  EXPECT_THAT(error_with("add_cross_attention", true), HasSubstr("cross-attention"));
  EXPECT_THAT(error_with("tie_word_embeddings", false), HasSubstr("ties the decoder"));
  EXPECT_THAT(error_with("num_attention_heads", 7), HasSubstr("which 7 heads do not divide"));
  EXPECT_THAT(error_with("hidden_size", 0), HasSubstr("at least 1"));
  EXPECT_THAT(error_with("vocab_size", 1e12),
              HasSubstr("`vocab_size` is 1000000000000; it must be at least 1 and at most"));
  EXPECT_THAT(error_with("num_hidden_layers", 1'000'000),
              HasSubstr("`num_hidden_layers` is 1000000; it must be at least 1 and at most 10000"));
  // Each size alone is possible.
  Json large = Json::parse(bert_config_text({}));
  large["hidden_size"] = 393216;
  large["intermediate_size"] = 1'000'000;
  EXPECT_THAT(message_of([&] { parse_bert_config(large, "config.json"); }),
              HasSubstr("`hidden_size` is 393216: with the other sizes the model has 1.7e+13"));
  EXPECT_THAT(error_with("hidden_dropout_prob", 1.0), HasSubstr("[0, 1)"));
  EXPECT_THAT(error_with("layer_norm_eps", -1), HasSubstr("positive"));
  EXPECT_THAT(error_with("torch_dtype", "float8"), HasSubstr("bfloat16"));
  EXPECT_THAT(error_with("id2label", {{"0", "a"}, {"2", "b"}}), HasSubstr("ids 0 to 1"));
  EXPECT_THAT(error_with("architectures", 3), HasSubstr("list of class names"));
  EXPECT_THAT(message_of([] { parse(R"({"hidden_size": 8})"); }),
              HasSubstr("`vocab_size` is missing"));
}

}  // namespace
}  // namespace onebit::formats
