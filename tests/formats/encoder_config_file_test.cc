#include "onebit/data/formats/encoder_config_file.h"
#include "onebit/ground/base/json.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/base/message_of.h"

namespace onebit::formats {
namespace {

using ::testing::HasSubstr;

EncoderConfigFile parse(const std::string& text) {
  return parse_encoder_config(parse_json(text, "config.json"), "config.json");
}

TEST(EncoderConfigFile, RoundTrip) {
  EncoderConfigFile config = config_of_family("bert_pre_layer_norm");
  config.architecture = "BertForSequenceClassification";
  config.vocab_size = 100;
  config.hidden_size = 24;
  config.num_hidden_layers = 3;
  config.num_attention_heads = 4;
  config.intermediate_size = 50;
  config.max_position_embeddings = 33;
  config.type_vocab_size = 3;
  config.choices.activation = config.choices.head_activation = ChosenActivation::kGeluTanh;
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
  EXPECT_EQ(parse(encoder_config_text(config)), config);
  config.may_be_unanswerable = false;
  EXPECT_EQ(parse(encoder_config_text(config)), config);
  EXPECT_EQ(parse(encoder_config_text({})), EncoderConfigFile{});
}

TEST(EncoderConfigFile, GooglesFile) {
  const EncoderConfigFile config =
      parse(R"({"attention_probs_dropout_prob": 0.1, "hidden_act": "gelu",
    "hidden_dropout_prob": 0.1, "hidden_size": 1024, "initializer_range": 0.02,
    "intermediate_size": 4096, "max_position_embeddings": 512, "num_attention_heads": 16,
    "num_hidden_layers": 24, "type_vocab_size": 2, "vocab_size": 30522})");
  EXPECT_EQ(config.num_hidden_layers, 24);
  EXPECT_EQ(config.choices.activation, ChosenActivation::kGeluErf);
  EXPECT_EQ(config.layer_norm_eps, 1e-12);
}

// The error of the default config with one key replaced.
std::string error_with(const std::string& key, const Json& value) {
  Json config = Json::parse(encoder_config_text({}));
  config[key] = value;
  return message_of([&] { parse_encoder_config(config, "config.json"); });
}

TEST(EncoderConfigFile, ActivationNames) {
  for (const char* name : {"gelu_new", "gelu_pytorch_tanh", "gelu_fast"}) {
    Json config = Json::parse(encoder_config_text({}));
    config["hidden_act"] = name;
    EXPECT_EQ(parse_encoder_config(config, "c").choices.activation, ChosenActivation::kGeluTanh)
        << name;
  }
  EXPECT_THAT(error_with("hidden_act", "tanh"), HasSubstr("one of gelu, gelu_new"));
}

TEST(EncoderConfigFile, TypesOfTheFilesTensors) {
  const auto type = [](const std::string& name) {
    Json config = Json::parse(encoder_config_text({}));
    config["torch_dtype"] = name;
    return parse_encoder_config(config, "c").torch_dtype;
  };
  // Doubles are read as floats.
  for (const char* name : {"float64", "torch.float64", "float32", "torch.float32", "auto"}) {
    EXPECT_EQ(type(name), DType::kF32) << name;
  }
  EXPECT_EQ(type("bfloat16"), DType::kBF16);
  EXPECT_EQ(type("torch.bfloat16"), DType::kBF16);
  EXPECT_EQ(type("torch.float16"), DType::kF16);
}

TEST(EncoderConfigFile, WhatThisBertCannotBe) {
  EXPECT_THAT(error_with("model_type", "robberta"),
              HasSubstr("config.json: key `model_type` is \"robberta\", which onebit does not know "
                        "(did you mean \"roberta\"?). It knows bert, "));
  EXPECT_THAT(error_with("position_embedding_type", "alibi"),
              HasSubstr("`position_embedding_type` is \"alibi\"; onebit's BERT has a table of"));
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
  Json large = Json::parse(encoder_config_text({}));
  large["hidden_size"] = 393216;
  large["intermediate_size"] = 1'000'000;
  EXPECT_THAT(message_of([&] { parse_encoder_config(large, "config.json"); }),
              HasSubstr("`hidden_size` is 393216: with the other sizes the model has 1.7e+13"));
  EXPECT_THAT(error_with("hidden_dropout_prob", 1.0), HasSubstr("[0, 1)"));
  EXPECT_THAT(error_with("layer_norm_eps", -1), HasSubstr("positive"));
  EXPECT_THAT(error_with("torch_dtype", "float8"), HasSubstr("bfloat16"));
  EXPECT_THAT(error_with("id2label", {{"0", "a"}, {"2", "b"}}), HasSubstr("ids 0 to 1"));
  EXPECT_THAT(error_with("architectures", 3), HasSubstr("list of class names"));
  EXPECT_THAT(message_of([] { parse(R"({"hidden_size": 8})"); }),
              HasSubstr("`vocab_size` is missing"));
}

// A small config of every family, with values that differ from the family's.
std::vector<EncoderConfigFile> configs_of_families() {
  std::vector<EncoderConfigFile> configs;
  for (const Family& family : families()) {
    EncoderConfigFile config = config_of_family(family.model_type);
    config.vocab_size = 101;
    config.hidden_size = 48;
    config.num_hidden_layers = 5;
    config.num_attention_heads = 4;
    config.intermediate_size = 64;
    config.max_position_embeddings = 258;
    config.initializer_range = 0.2;
    config.pad_token_id = 3;
    if (family.positions_after_pad) config.choices.first_position = 4;
    configs.push_back(config);
  }
  return configs;
}

TEST(EncoderConfigFile, EveryFamilyReadsWhatItWrites) {
  for (EncoderConfigFile config : configs_of_families()) {
    for (const char* architecture : {"BertModel", "BertForMaskedLM", "BertForTokenClassification",
                                     "BertForQuestionAnswering"}) {
      config.architecture = architecture;
      EXPECT_EQ(parse(encoder_config_text(config)), config) << config.model_type;
    }
    config.architecture = "BertForSequenceClassification";
    if (!config.family().keys.classifier_dropout.empty()) config.classifier_dropout = 0.25;
    EXPECT_EQ(parse(encoder_config_text(config)), config) << config.model_type;
  }
}

TEST(EncoderConfigFile, FamiliesHaveTheirOwnKeysAndClasses) {
  const auto text = [](const char* type, const char* architecture) {
    EncoderConfigFile config = config_of_family(type);
    config.architecture = architecture;
    config.intermediate_size = 2048;
    return Json::parse(encoder_config_text(config));
  };
  const Json distilbert = text("distilbert", "BertForSequenceClassification");
  EXPECT_EQ(distilbert.at("architectures").at(0), "DistilBertForSequenceClassification");
  EXPECT_EQ(distilbert.at("dim"), 768);
  EXPECT_EQ(distilbert.at("n_layers"), 12);
  EXPECT_EQ(distilbert.at("hidden_dim"), 2048);
  EXPECT_FALSE(distilbert.contains("hidden_size"));
  EXPECT_FALSE(distilbert.contains("type_vocab_size"));
  const Json modern = text("modernbert", "BertModel");
  EXPECT_EQ(modern.at("architectures").at(0), "ModernBertModel");
  EXPECT_EQ(modern.at("layer_types").at(3), "full_attention");
  EXPECT_EQ(modern.at("layer_types").at(4), "sliding_attention");
  EXPECT_EQ(modern.at("rope_parameters").at("sliding_attention").at("rope_theta"), 10'000);
  const Json neo = text("neobert", "BertForMaskedLM");
  EXPECT_EQ(neo.at("architectures").at(0), "NeoBERTLMHead");
  EXPECT_EQ(neo.at("intermediate_size"), 3072);
  EXPECT_THAT(message_of([&] { text("roberta", "BertForPreTraining"); }),
              HasSubstr("RoBERTa has no head for next sentences"));
}

// transformers drops before the head for answers in these two families only.
TEST(EncoderConfigFile, DropoutBeforeTheHeadForAnswers) {
  const auto read = [](const char* type, const char* architecture, const Json& more) {
    EncoderConfigFile config = config_of_family(type);
    config.architecture = architecture;
    Json json = Json::parse(encoder_config_text(config));
    json.update(more);
    const EncoderConfigFile parsed = parse_encoder_config(json, "config.json");
    EXPECT_EQ(parse(encoder_config_text(parsed)), parsed) << type;
    return parsed.answer_dropout;
  };
  constexpr const char* kAnswers = "BertForQuestionAnswering";
  EXPECT_EQ(read("distilbert", kAnswers, Json::object()), 0.1);
  EXPECT_EQ(read("distilbert", kAnswers, {{"qa_dropout", 0.25}}), 0.25);
  EXPECT_EQ(read("distilbert", "BertForMaskedLM", {{"qa_dropout", 0.25}}), 0.25);
  EXPECT_EQ(read("modernbert", kAnswers, {{"classifier_dropout", 0.25}}), 0.25);
  EXPECT_EQ(read("modernbert", kAnswers, Json::object()), 0);
  EXPECT_EQ(read("roberta", kAnswers, {{"classifier_dropout", 0.25}}), 0);
  EXPECT_THAT(message_of([&] {
                read("distilbert", kAnswers, {{"qa_dropout", 1}});
              }),
              HasSubstr("`qa_dropout` is 1; it must be in [0, 1)"));
}

// A config of a family with one key replaced.
std::string error_of(const char* type, const std::string& key, const Json& value) {
  Json config = Json::parse(encoder_config_text(config_of_family(type)));
  config[key] = value;
  return message_of([&] { parse_encoder_config(config, "config.json"); });
}

TEST(EncoderConfigFile, OldConfigsOfModernBertAndNomicBert) {
  Json modern = Json::parse(encoder_config_text(config_of_family("modernbert")));
  modern.erase("rope_parameters");
  modern.erase("layer_types");
  modern["global_attn_every_n_layers"] = 2;
  modern["global_rope_theta"] = 1000.0;
  modern["local_rope_theta"] = 20.0;
  const EncoderChoices old = parse_encoder_config(modern, "c").choices;
  EXPECT_EQ(old.full_attention_every, 2);
  EXPECT_EQ(old.rotary_theta, 1000);
  EXPECT_EQ(old.window_theta, 20);
  modern["local_rope_theta"] = nullptr;
  EXPECT_EQ(parse_encoder_config(modern, "c").choices.window_theta, 1000);
  Json nomic = {{"model_type", "nomic_bert"},
                {"n_embd", 48},
                {"n_layer", 2},
                {"n_head", 4},
                {"n_inner", 64},
                {"vocab_size", 101},
                {"n_positions", 256},
                {"prenorm", false},
                {"rotary_emb_base", 500},
                {"activation_function", "swiglu"}};
  const EncoderConfigFile config = parse_encoder_config(nomic, "c");
  EXPECT_EQ(config.hidden_size, 48);
  EXPECT_EQ(config.max_position_embeddings, 256);
  EXPECT_EQ(config.choices.rotary_theta, 500);
  nomic["prenorm"] = true;
  EXPECT_THAT(message_of([&] { parse_encoder_config(nomic, "c.json"); }),
              HasSubstr("c.json: key `prenorm` is true; onebit's nomic-bert has false"));
}

TEST(EncoderConfigFile, WhatAnEncoderCannotBe) {
  EXPECT_THAT(error_of("modernbert", "local_attention", 33), HasSubstr("even number of tokens"));
  EXPECT_THAT(error_of("modernbert", "local_attention", 0), HasSubstr("even number of tokens"));
  EXPECT_THAT(error_of("modernbert", "layer_types", {"full_attention"}),
              HasSubstr("an entry for each of the 12 layers"));
  std::vector<std::string> types(12, "sliding_attention");
  EXPECT_THAT(error_of("modernbert", "layer_types", types),
              HasSubstr("\"sliding_attention\" for layer 0"));
  types[0] = types[2] = types[5] = "full_attention";
  EXPECT_THAT(error_of("modernbert", "layer_types", types), HasSubstr("for layer 4"));
  types[5] = "chunked_attention";
  EXPECT_THAT(error_of("modernbert", "layer_types", types), HasSubstr("chunked_attention"));
  EXPECT_THAT(error_of("gte", "rope_scaling", {{"type", "ntk"}, {"factor", 8.0}}),
              HasSubstr("`rope_scaling`: type is \"ntk\""));
  EXPECT_THAT(error_of("gte", "rope_parameters", {{"rope_type", "yarn"}, {"rope_theta", 1e4}}),
              HasSubstr("rope_type is \"yarn\""));
  EXPECT_THAT(error_of("gte", "num_attention_heads", 256), HasSubstr("must be even"));
  EXPECT_THAT(error_of("distilbert", "n_heads", 7), HasSubstr("key `dim` is 768, which 7 heads"));
  EXPECT_THAT(error_of("distilbert", "n_layers", 0), HasSubstr("key `n_layers` is 0"));
  EXPECT_THAT(error_of("roberta", "max_position_embeddings", 2), HasSubstr("first 2 positions"));
  EXPECT_THAT(error_of("mpnet", "relative_attention_num_buckets", 3), HasSubstr("even number"));
  EXPECT_THAT(error_of("neobert", "rope", false), HasSubstr("`rope` is false"));
  EXPECT_THAT(error_of("neobert", "hidden_act", "gelu"), HasSubstr("swiglu"));
  EXPECT_THAT(error_of("electra", "embedding_size", 0), HasSubstr("at least 1"));
  EncoderConfigFile gated = config_of_family("roberta");
  gated.choices.gated = true;
  EXPECT_THAT(message_of([&] { encoder_config_text(gated); }),
              HasSubstr("computes what transformers' RoBERTa cannot"));
}

}  // namespace
}  // namespace onebit::formats
