#include "onebit/math/model/config.h"
#include "onebit/ground/base/json.h"

#include <gtest/gtest.h>

#include "onebit/math/model/memory_plan.h"
#include "tests/base/message_of.h"

namespace onebit::model {
namespace {

EncoderConfig read(const std::string& text, int64_t vocab_size = 1000) {
  Keys section(parse_json(text, "recipe.json"), "recipe.json", "model");
  const EncoderConfig config = read_config(section, vocab_size);
  read_memory_options(section);
  section.check();
  return config;
}

TEST(EncoderConfig, PresetsHaveTheirShapes) {
  const EncoderConfig tiny = preset("bert-tiny");
  EXPECT_EQ(tiny.layers, 2);
  EXPECT_EQ(tiny.hidden_size, 128);
  EXPECT_EQ(tiny.heads, 2);
  EXPECT_EQ(tiny.intermediate_size, 512);
  const EncoderConfig large = preset("bert-large");
  EXPECT_EQ(large.layers, 24);
  EXPECT_EQ(large.heads, 16);
  EXPECT_EQ(preset("bert-base"), EncoderConfig());
  for (const std::string& name : preset_names()) EXPECT_NO_THROW(validate(preset(name), name));
}

// tests/pretrain/pretraining_task_start_test.cc has the messages.
TEST(EncoderConfig, ComesFromTheModelThatARunStartsFrom) {
  StartingModel start = {.config = preset("bert-mini"), .place = "bert"};
  start.config.vocab_size = 77;
  start.config.hidden_dropout = 0;
  start.config.max_positions = 99;
  const auto read_with = [&](const std::string& text) {
    Keys section(parse_json(text, "recipe.json"), "recipe.json", "model");
    const EncoderConfig config = read_config(section, 1000, &start);
    section.check();
    return config;
  };
  EXPECT_EQ(read_with("{}"), start.config);
  EXPECT_EQ(read_with(R"({"preset": "bert-mini"})"), start.config);
  EXPECT_EQ(read_with(R"({"hidden_dropout_prob": 0.25})").hidden_dropout, 0.25);
  for (const char* wrong :
       {R"({"preset": "bert-tiny"})", R"({"hidden_size": 512})", R"({"num_hidden_layers": 5})",
        R"({"num_attention_heads": 8})", R"({"intermediate_size": 1})", R"({"vocab_size": 1000})",
        R"({"max_position_embeddings": 512})", R"({"type_vocab_size": 1})",
        R"({"hidden_act": "gelu_new"})", R"({"layer_norm_eps": 1e-5})",
        R"({"pre_layer_norm": true})"}) {
    EXPECT_NE(message_of([&] { read_with(wrong); }).find("the model bert has "), std::string::npos)
        << wrong;
  }
}

TEST(EncoderConfig, UnknownPresetNamesTheNearest) {
  EXPECT_NE(message_of([] { preset("bert-bse"); }).find("did you mean \"bert-base\"?"),
            std::string::npos);
}

TEST(EncoderConfig, SectionStartsFromAPresetAndOverridesIt) {
  const EncoderConfig config = read(R"({"preset": "bert-mini", "hidden_act": "gelu_new",
                                     "hidden_dropout_prob": 0, "num_hidden_layers": 3,
                                     "pre_layer_norm": true, "gelu_checkpoint": true})");
  EXPECT_EQ(config.hidden_size, 256);
  EXPECT_EQ(config.layers, 3);
  EXPECT_EQ(config.hidden_dropout, 0);
  EXPECT_EQ(config.choices.activation, ChosenActivation::kGeluTanh);
  EXPECT_EQ(config.choices.head_activation, ChosenActivation::kGeluTanh);
  EXPECT_TRUE(config.choices.norm_before);
  EXPECT_EQ(config.vocab_size, 1000);
  EXPECT_EQ(read(R"({"vocab_size": 50})").vocab_size, 50);
}

TEST(MemoryOptions, EachKeySetsItsOwnMember) {
  const auto options = [](const char* key) {
    Keys section(parse_json(fmt::format(R"({{"{}": true}})", key), "recipe.json"), "recipe.json",
                 "model");
    return read_memory_options(section);
  };
  EXPECT_EQ(options("attn_dropout_checkpoint"),
            MemoryOptions{.attention_dropout_checkpoint = true});
  EXPECT_EQ(options("gelu_checkpoint"), MemoryOptions{.gelu_checkpoint = true});
  EXPECT_EQ(options("normalize_invertible"), MemoryOptions{.normalize_invertible = true});
  EXPECT_EQ(options("full_recomputation"), MemoryOptions{.full_recomputation = true});
}

TEST(EncoderConfig, ErrorsNameTheKeyAndTheWayOut) {
  EXPECT_EQ(message_of([] { read(R"({"num_attention_heads": 7})"); }),
            "recipe.json: key `model.*`: hidden_size 768 is not divisible by 7 attention heads; "
            "choose a divisor of hidden_size as num_attention_heads");
  EXPECT_NE(
      message_of([] {
        read(R"({"hidden_dropout_prob": 1})");
      }).find("`model.hidden_dropout_prob` is 1; it must be a number of at least 0 and below 1"),
      std::string::npos);
  EXPECT_NE(message_of([] {
              read(R"({"num_hidden_layers": 0})");
            }).find("`model.num_hidden_layers` is 0; it must be a whole number from 1 to 10000"),
            std::string::npos);
  // Each size alone is possible.
  EXPECT_NE(message_of([] {
              read(R"({"hidden_size": 393216, "intermediate_size": 1000000})");
            }).find("`model.*`: the model's hidden_size is 393216: with the other sizes"),
            std::string::npos);
  EXPECT_NE(message_of([] { read(R"({"hiden_size": 7})"); }).find("did you mean \"hidden_size\"?"),
            std::string::npos);
  EXPECT_NE(message_of([] { read(R"({"hidden_act": "gelu_neww"})"); }).find("\"gelu_new\""),
            std::string::npos);
  EXPECT_NE(
      message_of([] { read(R"({"hidden_act": "selu"})"); }).find("must be one of gelu, gelu_new"),
      std::string::npos);
}

}  // namespace
}  // namespace onebit::model
