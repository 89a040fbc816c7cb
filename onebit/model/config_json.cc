#include "onebit/model/config.h"

namespace onebit::model {
namespace {

using ops::ActivationKind;

void read_sizes(Keys& section, BertConfig& config) {
  const auto size = [&](const char* name, int64_t& value, const char* meaning) {
    section.integer(name, value, at_least(1), {meaning, "the preset's"});
  };
  size("hidden_size", config.hidden_size, "width of the encoder; a multiple of the heads");
  size("num_hidden_layers", config.layers, "encoder layers");
  size("num_attention_heads", config.heads, "attention heads of a layer");
  size("intermediate_size", config.intermediate_size, "width inside the feed-forward part");
  section.integer("max_position_embeddings", config.max_positions, at_least(1),
                  "the longest sequence, in tokens");
  section.integer("type_vocab_size", config.segments, at_least(1),
                  "segments (token types): the two sentences of a pair");
}

void read_arithmetic(Keys& section, BertConfig& config) {
  section.choice("hidden_act", config.activation,
                 {{"gelu", ActivationKind::kGeluErf},
                  {"gelu_new", ActivationKind::kGeluTanh},
                  {"gelu_tanh", ActivationKind::kGeluTanh},
                  {"gelu_pytorch_tanh", ActivationKind::kGeluTanh}},
                 "activation of the feed-forward part; all but gelu are its tanh form");
  section.number("hidden_dropout_prob", config.hidden_dropout, at_least(0).below(1),
                 "dropout after embeddings and sublayers");
  section.number("attention_probs_dropout_prob", config.attention_dropout, at_least(0).below(1),
                 "dropout of attention probabilities");
  section.number("initializer_range", config.initializer_range, above(0),
                 "standard deviation of initial weights");
  section.number("layer_norm_eps", config.layer_norm_eps, above(0),
                 "added to the variance in layer norms");
  section.boolean("pre_layer_norm", config.pre_layer_norm,
                  "layer norm before each sublayer instead of after it, and one at the end");
  section.boolean("residual_scaled_init", config.residual_scaled_init,
                  "draw the last matrix of each sublayer smaller, by sqrt(2 * layers)");
}

}  // namespace

BertConfig read_config(Keys& section, std::optional<int64_t> vocab_size) {
  std::string name = "bert-base";
  section.word("preset", name, preset_names(), "sizes to start from");
  BertConfig config;
  section.attempt([&] { config = preset(name); });
  read_sizes(section, config);
  read_arithmetic(section, config);
  config.vocab_size = vocab_size.value_or(config.vocab_size);
  section.integer("vocab_size", config.vocab_size, at_least(1),
                  {"tokens of the vocabulary", "that of the token store"});
  section.attempt([&] { validate(config, section.place("*")); });
  return config;
}

}  // namespace onebit::model
