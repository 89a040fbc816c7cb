#include "onebit/model/config.h"

namespace onebit::model {
namespace {

using ops::ActivationKind;

ActivationKind read_activation(JsonReader& section) {
  const std::string name =
      section.choice("hidden_act", "gelu", {"gelu", "gelu_new", "gelu_tanh", "gelu_pytorch_tanh"});
  return name == "gelu" ? ActivationKind::kGeluErf : ActivationKind::kGeluTanh;
}

void read_keys(JsonReader& section, BertConfig& config) {
  config.hidden_size = section.integer("hidden_size", config.hidden_size);
  config.layers = section.integer("num_hidden_layers", config.layers);
  config.heads = section.integer("num_attention_heads", config.heads);
  config.intermediate_size = section.integer("intermediate_size", config.intermediate_size);
  config.max_positions = section.integer("max_position_embeddings", config.max_positions);
  config.segments = section.integer("type_vocab_size", config.segments);
  config.activation = read_activation(section);
  config.hidden_dropout = section.number("hidden_dropout_prob", config.hidden_dropout);
  config.attention_dropout =
      section.number("attention_probs_dropout_prob", config.attention_dropout);
  config.initializer_range = section.number("initializer_range", config.initializer_range);
  config.layer_norm_eps = section.number("layer_norm_eps", config.layer_norm_eps);
  config.pre_layer_norm = section.boolean("pre_layer_norm", config.pre_layer_norm);
  config.residual_scaled_init =
      section.boolean("residual_scaled_init", config.residual_scaled_init);
}

}  // namespace

BertConfig read_config(JsonReader& section, int64_t vocab_size) {
  BertConfig config = preset(section.choice("preset", "bert-base", preset_names()));
  read_keys(section, config);
  config.vocab_size = section.integer("vocab_size", vocab_size);
  validate(config, section.place("*"));
  return config;
}

}  // namespace onebit::model
