#include "onebit/model/config.h"

namespace onebit::model {
namespace {

using ops::ActivationKind;

struct ActivationName {
  const char* name;
  ActivationKind kind;
};

// The first name of a kind is the one written.
constexpr ActivationName kActivationNames[] = {
    {"gelu", ActivationKind::kGeluErf},       {"gelu_new", ActivationKind::kGeluTanh},
    {"gelu_tanh", ActivationKind::kGeluTanh}, {"gelu_pytorch_tanh", ActivationKind::kGeluTanh},
    {"relu", ActivationKind::kRelu},          {"silu", ActivationKind::kSwish},
    {"swish", ActivationKind::kSwish},
};

const char* name_of_activation(ActivationKind kind) {
  for (const auto& [name, known] : kActivationNames) {
    if (known == kind) return name;
  }
  ONEBIT_INVARIANT(false);
  return nullptr;
}

ActivationKind read_activation(JsonReader& section, ActivationKind fallback) {
  std::vector<std::string> names;
  for (const auto& entry : kActivationNames) names.emplace_back(entry.name);
  const std::string chosen = section.choice("hidden_act", name_of_activation(fallback), names);
  for (const auto& [name, kind] : kActivationNames) {
    if (chosen == name) return kind;
  }
  return fallback;
}

void read_keys(JsonReader& section, BertConfig& config) {
  config.hidden_size = section.integer("hidden_size", config.hidden_size);
  config.layers = section.integer("num_hidden_layers", config.layers);
  config.heads = section.integer("num_attention_heads", config.heads);
  config.intermediate_size = section.integer("intermediate_size", config.intermediate_size);
  config.max_positions = section.integer("max_position_embeddings", config.max_positions);
  config.segments = section.integer("type_vocab_size", config.segments);
  config.activation = read_activation(section, config.activation);
  config.hidden_dropout = section.number("hidden_dropout_prob", config.hidden_dropout);
  config.attention_dropout =
      section.number("attention_probs_dropout_prob", config.attention_dropout);
  config.initializer_range = section.number("initializer_range", config.initializer_range);
  config.layer_norm_eps = section.number("layer_norm_eps", config.layer_norm_eps);
  config.pre_layer_norm = section.boolean("pre_layer_norm", config.pre_layer_norm);
  config.residual_scaled_init =
      section.boolean("residual_scaled_init", config.residual_scaled_init);
}

// The keys that would change what the encoder computes, with the only value it can serve.
void refuse_other_architectures(JsonReader& json, const std::string& source) {
  const std::string type = json.text("model_type", "bert");
  require(type == "bert", "{}: model_type is \"{}\"; only \"bert\" can be loaded", source, type);
  const std::string positions = json.text("position_embedding_type", "absolute");
  require(positions == "absolute",
          "{}: position_embedding_type is \"{}\"; only \"absolute\" positions are supported",
          source, positions);
  require(!json.boolean("is_decoder", false) && !json.boolean("add_cross_attention", false),
          "{}: this is a decoder (is_decoder or add_cross_attention is true); only encoders can be "
          "loaded",
          source);
}

}  // namespace

BertConfig read_config(JsonReader& section, int64_t vocab_size) {
  BertConfig config = preset(section.choice("preset", "bert-base", preset_names()));
  read_keys(section, config);
  const int64_t asked = section.integer("vocab_size", 0);
  config.vocab_size = asked != 0 ? asked : vocab_size;
  validate(config, section.place("*"));
  return config;
}

BertConfig read_hugging_face_config(const Json& json, const std::string& source) {
  JsonReader reader(json, source, "");
  refuse_other_architectures(reader, source);
  BertConfig config;
  read_keys(reader, config);
  config.vocab_size = reader.integer("vocab_size", config.vocab_size);
  validate(config, source);
  return config;
}

Json hugging_face_config(const BertConfig& config, const std::string& architecture) {
  Json json;
  json["architectures"] = Json::array({architecture});
  json["model_type"] = "bert";
  json["vocab_size"] = config.vocab_size;
  json["hidden_size"] = config.hidden_size;
  json["num_hidden_layers"] = config.layers;
  json["num_attention_heads"] = config.heads;
  json["intermediate_size"] = config.intermediate_size;
  json["max_position_embeddings"] = config.max_positions;
  json["type_vocab_size"] = config.segments;
  json["hidden_act"] = name_of_activation(config.activation);
  json["hidden_dropout_prob"] = config.hidden_dropout;
  json["attention_probs_dropout_prob"] = config.attention_dropout;
  json["initializer_range"] = config.initializer_range;
  json["layer_norm_eps"] = config.layer_norm_eps;
  json["position_embedding_type"] = "absolute";
  json["pad_token_id"] = 0;
  if (config.pre_layer_norm) json["pre_layer_norm"] = true;
  if (config.residual_scaled_init) json["residual_scaled_init"] = true;
  return json;
}

}  // namespace onebit::model
