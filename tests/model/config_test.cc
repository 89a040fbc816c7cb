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

TEST(EncoderConfig, ModernPresetsAreModernBerts) {
  const EncoderConfig base = preset("modern-base");
  EXPECT_EQ(base.family, "modernbert");
  EXPECT_EQ(base.layers, 22);
  EXPECT_EQ(base.heads, 12);
  EXPECT_EQ(base.intermediate_size, 1152);
  EXPECT_EQ(base.segments, 0);
  EXPECT_TRUE(base.choices.gated);
  EXPECT_FALSE(base.choices.position_table);
  EXPECT_EQ(base.choices.window, 64);
  EXPECT_FALSE(base.has_first_norm());
  EXPECT_FALSE(base.may_have_next_sentence());
  EncoderConfig tiny = preset("modern-tiny");
  tiny.vocab_size = 1000;
  EXPECT_EQ(read(R"({"preset": "modern-tiny"})"), tiny);
  // Keys of what such a model does not have.
  for (const char* key : {"type_vocab_size", "pre_layer_norm"}) {
    const std::string text = fmt::format(R"({{"preset": "modern-tiny", "{}": 1}})", key);
    EXPECT_NE(message_of([&] { read(text); }).find(key), std::string::npos) << key;
  }
}

TEST(EncoderConfig, WindowsAndAnglesAreKeys) {
  const auto modern = [](const std::string& more) {
    return R"({"preset": "modern-tiny", )" + more + "}";
  };
  const EncoderChoices chosen =
      read(modern(R"("local_attention": 32, "global_attn_every_n_layers": 2,
                     "global_rope_theta": 10000, "local_rope_theta": 500)"))
          .choices;
  EncoderChoices expected = preset("modern-tiny").choices;
  expected.window = 16;
  expected.full_attention_every = 2;
  expected.rotary_theta = 10'000;
  expected.window_theta = 500;
  EXPECT_EQ(chosen, expected);
  EXPECT_EQ(read(modern(R"("local_attention": 20000)")).choices.window, 10'000)
      << "a window may be wider than a sequence";
  struct Wrong {
    const char* key;
    const char* value;
    const char* reason;
  };
  for (const Wrong& wrong :
       {Wrong{"local_attention", "33", "it must be an even number of tokens"},
        Wrong{"local_attention", "0", "a whole number from 2"},
        Wrong{"local_attention", "-2", "a whole number from 2"},
        Wrong{"global_attn_every_n_layers", "0", "at least 1"},
        Wrong{"global_rope_theta", "0", "above 0"}, Wrong{"local_rope_theta", "-1", "above 0"}}) {
    const std::string pair = fmt::format(R"("{}": {})", wrong.key, wrong.value);
    const std::string message = message_of([&] { read(modern(pair)); });
    EXPECT_NE(message.find(fmt::format("`model.{}` is {}", wrong.key, wrong.value)),
              std::string::npos)
        << message;
    EXPECT_NE(message.find(wrong.reason), std::string::npos) << message;
    EXPECT_EQ(message.find('\n'), std::string::npos) << message;
    EXPECT_NE(message_of([&] {
                read(fmt::format(R"({{"{}": 4}})", wrong.key));
              }).find("a bert has no windows"),
              std::string::npos);
  }
  const std::string odd =
      message_of([&] { read(modern(R"("hidden_size": 66, "num_attention_heads": 2)")); });
  EXPECT_NE(odd.find("a head has 33 columns"), std::string::npos) << odd;
}

TEST(EncoderConfig, ChoicesThatContradictTheSizesAreErrors) {
  EncoderConfig config = preset("modern-tiny");
  config.heads = 128;
  EXPECT_NE(message_of([&] { validate(config, "m"); }).find("a head has 1 columns"),
            std::string::npos);
  config = preset("modern-tiny");
  config.choices.window = 0;
  EXPECT_NE(message_of([&] { validate(config, "m"); }).find("the window has no size"),
            std::string::npos);
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

// Longer contexts: more positions and another angle. A window is what the model was trained with.
TEST(EncoderConfig, RotaryPositionsOfAStartingModelMayGrow) {
  StartingModel start = {.config = preset("modern-tiny"), .place = "modern"};
  start.config.max_positions = 1024;
  start.config.choices.rotary_theta = 10'000;
  const auto read_with = [&](const std::string& text) {
    Keys section(parse_json(text, "recipe.json"), "recipe.json", "model");
    const EncoderConfig config = read_config(section, 1000, &start);
    section.check();
    return config;
  };
  EXPECT_EQ(read_with("{}"), start.config);
  const EncoderConfig longer =
      read_with(R"({"max_position_embeddings": 8192, "global_rope_theta": 160000})");
  EXPECT_EQ(longer.max_positions, 8192);
  EXPECT_EQ(longer.choices.rotary_theta, 160'000);
  for (const char* wrong : {R"({"local_attention": 64})", R"({"global_attn_every_n_layers": 2})"}) {
    EXPECT_NE(message_of([&] { read_with(wrong); }).find("the model modern has "),
              std::string::npos)
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
