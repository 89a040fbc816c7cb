#include "onebit/data/formats/config_choices.h"

#include <algorithm>
#include <map>
#include <utility>
#include <vector>

#include "onebit/ground/base/config_keys.h"
#include "onebit/ground/base/error.h"
#include "onebit/ground/base/printable.h"

namespace onebit::formats {
namespace {

constexpr const char* kRopeParameters = "rope_parameters";
constexpr const char* kRopeScaling = "rope_scaling";
constexpr const char* kRopeTheta = "rope_theta";
constexpr const char* kFull = "full_attention";
constexpr const char* kSliding = "sliding_attention";
constexpr const char* kLayerTypes = "layer_types";
constexpr const char* kPoolingKey = "classifier_pooling";
constexpr const char* kHeadActivation = "classifier_activation";

// The first name of an activation is written.
struct ActivationName {
  const char* name;
  ChosenActivation kind;
};
constexpr ActivationName kActivationNames[] = {
    {"gelu", ChosenActivation::kGeluErf},       {"gelu_new", ChosenActivation::kGeluTanh},
    {"gelu_tanh", ChosenActivation::kGeluTanh}, {"gelu_pytorch_tanh", ChosenActivation::kGeluTanh},
    {"gelu_fast", ChosenActivation::kGeluTanh}, {"gelu_python", ChosenActivation::kGeluErf},
    {"relu", ChosenActivation::kRelu},          {"silu", ChosenActivation::kSwish},
    {"swish", ChosenActivation::kSwish},
};

ChosenActivation read_activation(JsonReader& reader, const std::string& key,
                                 ChosenActivation fallback) {
  if (!reader.has(key)) return fallback;
  std::vector<std::string> names;
  std::map<std::string, ChosenActivation> kinds;
  for (const auto& [name, kind] : kActivationNames) {
    names.emplace_back(name);
    kinds.emplace(name, kind);
  }
  return kinds.at(reader.choice(key, names.front(), names));
}

// Error: positions are scaled, or turn a part of the columns only.
void refuse_scaling(JsonReader rope, const std::string& place) {
  const bool old = !rope.has("rope_type") && rope.has("type");
  const std::string key = old ? "type" : "rope_type";
  const std::string type = rope.text(key, "default");
  require(type == "default",
          "{}: {} is {}; onebit computes rotary positions of the type \"default\" only", place, key,
          quote(type));
  require(rope.number("partial_rotary_factor", 1) == 1,
          "{}: partial_rotary_factor is not 1; onebit turns all columns of a head", place);
}

void read_one_angle(JsonReader& reader, EncoderChoices& choices) {
  double& theta = choices.rotary_theta;
  theta = read_positive(reader, kRopeTheta, theta);
  refuse_scaling(reader.object(kRopeScaling), reader.place(kRopeScaling));
  JsonReader rope = reader.object(kRopeParameters);
  refuse_scaling(rope, reader.place(kRopeParameters));
  theta = read_positive(rope, kRopeTheta, theta);
}

void read_angles_by_window(JsonReader& reader, EncoderChoices& choices) {
  choices.rotary_theta = read_positive(reader, config_keys::kFullTheta, choices.rotary_theta);
  constexpr const char* kLocal = config_keys::kWindowTheta;
  const bool same = reader.given().contains(kLocal) && !reader.has(kLocal);
  choices.window_theta =
      same ? choices.rotary_theta : read_positive(reader, kLocal, choices.window_theta);
  refuse_scaling(reader.object(kRopeScaling), reader.place(kRopeScaling));
  JsonReader rope = reader.object(kRopeParameters);
  for (const auto& [key, theta] :
       {std::pair(kFull, &choices.rotary_theta), std::pair(kSliding, &choices.window_theta)}) {
    JsonReader one = rope.object(key);
    refuse_scaling(one, rope.place(key));
    *theta = read_positive(one, kRopeTheta, *theta);
  }
}

// "full_attention" in every n-th layer, the first one included. Returns n, which is `every` if that
// fits: several numbers fit a few layers.
int64_t read_layer_types(JsonReader& reader, int64_t layers, int64_t every) {
  const Json& types = reader.raw(kLayerTypes);
  const std::string place = reader.place(kLayerTypes);
  require(types.is_array() && types.size() == static_cast<size_t>(layers),
          "{} must be a list with an entry for each of the {} layers", place, layers);
  std::vector<bool> full;
  for (const Json& type : types) {
    require(type == kFull || type == kSliding, "{} has {}; it must have {} and {} only", place,
            json_text(type), kFull, kSliding);
    full.push_back(type == kFull);
  }
  const auto misfit = [&](int64_t step) {
    int64_t layer = 0;
    while (layer < layers && full[static_cast<size_t>(layer)] == (layer % step == 0)) ++layer;
    return layer;
  };
  if (misfit(every) == layers) return every;
  const auto second = std::find(full.begin() + 1, full.end(), true);
  const int64_t step = second - full.begin();
  require(
      misfit(step) == layers,
      "{} has {} for layer {}; onebit's encoder has full attention in layer 0 and then in every "
      "n-th layer",
      place, json_text(types[static_cast<size_t>(misfit(step))]), misfit(step));
  return step;
}

void read_windows(JsonReader& reader, EncoderConfigFile& config) {
  EncoderChoices& choices = config.choices;
  choices.full_attention_every =
      reader.integer(config_keys::kFullAttentionEvery, choices.full_attention_every);
  require(choices.full_attention_every >= 1, "{} is {}; it must be at least 1",
          reader.place(config_keys::kFullAttentionEvery), choices.full_attention_every);
  if (reader.has(kLayerTypes)) {
    choices.full_attention_every =
        read_layer_types(reader, config.num_hidden_layers, choices.full_attention_every);
  }
  const int64_t width = reader.integer(config_keys::kLocalAttention, 2 * choices.window);
  require(width >= 2 && width % 2 == 0 && width <= largest_size(config_keys::kPositions),
          "{} is {}; it must be an even number of tokens, half of them on either side",
          reader.place(config_keys::kLocalAttention), width);
  choices.window = width / 2;
}

void read_modern_heads(JsonReader& reader, EncoderChoices& choices) {
  const std::string pooling = reader.choice(kPoolingKey, "cls", {"cls", "mean"});
  choices.sequence_pooling = pooling == "cls" ? SequencePooling::kFirst : SequencePooling::kMean;
  choices.head_activation = read_activation(reader, kHeadActivation, choices.head_activation);
  choices.sequence_activation = choices.head_activation;
}

}  // namespace

const char* activation_name(ChosenActivation kind) {
  for (const auto& [name, known] : kActivationNames) {
    if (known == kind) return name;
  }
  fail("an encoder of transformers has no feed-forward part with tanh");
}

double read_positive(JsonReader& reader, std::string_view key_name, double fallback) {
  if (key_name.empty()) return fallback;
  const std::string key(key_name);
  const double value = reader.number(key, fallback);
  require(value > 0, "{} is {}; it must be positive", reader.place(key), value);
  return value;
}

void read_choices(JsonReader& reader, const Family& family, EncoderConfigFile& config) {
  EncoderChoices& choices = config.choices;
  if (!family.keys.activation.empty()) {
    choices.activation =
        read_activation(reader, std::string(family.keys.activation), choices.activation);
    if (family.head_has_activation) choices.head_activation = choices.activation;
  }
  for (const auto& [key, choice, second] : family.choice_keys) {
    choices.*choice = reader.boolean(std::string(key), choices.*choice);
    if (second != nullptr) choices.*second = choices.*choice;
  }
  if (family.rotary == RotaryKeys::kOne) read_one_angle(reader, choices);
  if (family.rotary == RotaryKeys::kByWindow) {
    read_angles_by_window(reader, choices);
    read_windows(reader, config);
    read_modern_heads(reader, choices);
  }
  const int64_t head_size = config.hidden_size / config.num_attention_heads;
  require(choices.rotary_theta == 0 || head_size % 2 == 0,
          "{} is {} for {} heads of {} columns each; rotary positions turn pairs of columns, so "
          "their number must be even",
          reader.place(std::string(family.keys.hidden_size)), config.hidden_size,
          config.num_attention_heads, head_size);
  require(reader.integer("head_dim", head_size) == head_size,
          "{} is not {}, the columns of {} heads", reader.place("head_dim"), head_size,
          config.num_attention_heads);
  if (!family.keys.score_buckets.empty()) {
    const std::string key(family.keys.score_buckets);
    choices.score_buckets = reader.integer(key, choices.score_buckets);
    require(choices.score_buckets >= 4 && choices.score_buckets % 2 == 0 &&
                choices.score_buckets <= choices.score_distance,
            "{} is {}; it must be an even number from 4 to {}", reader.place(key),
            choices.score_buckets, choices.score_distance);
  }
}

void write_choices(nlohmann::json& json, const Family& family, const EncoderConfigFile& config) {
  const EncoderChoices& choices = config.choices;
  if (!family.keys.activation.empty()) {
    json[std::string(family.keys.activation)] = activation_name(choices.activation);
  }
  for (const ChoiceKey& key : family.choice_keys) json[std::string(key.key)] = choices.*key.choice;
  if (!family.keys.score_buckets.empty()) {
    json[std::string(family.keys.score_buckets)] = choices.score_buckets;
  }
  const auto rope = [](double theta) {
    return nlohmann::json{{kRopeTheta, theta}, {"rope_type", "default"}};
  };
  if (family.rotary == RotaryKeys::kOne) json[kRopeParameters] = rope(choices.rotary_theta);
  if (family.rotary != RotaryKeys::kByWindow) return;
  json[kRopeParameters] = {{kFull, rope(choices.rotary_theta)},
                           {kSliding, rope(choices.window_theta)}};
  for (int64_t layer = 0; layer < config.num_hidden_layers; ++layer) {
    json[kLayerTypes].push_back(choices.full_attention(layer) ? kFull : kSliding);
  }
  json[config_keys::kFullAttentionEvery] = choices.full_attention_every;
  json[config_keys::kLocalAttention] = 2 * choices.window;
  json[kPoolingKey] = choices.sequence_pooling == SequencePooling::kFirst ? "cls" : "mean";
  json[kHeadActivation] = activation_name(choices.sequence_activation);
}

namespace {

constexpr std::pair<const char*, const char*> kNomicKeys[] = {
    {"n_embd", "hidden_size"},
    {"n_layer", "num_hidden_layers"},
    {"n_head", "num_attention_heads"},
    {"n_inner", "intermediate_size"},
    {"n_positions", "max_position_embeddings"},
    {"layer_norm_epsilon", "layer_norm_eps"},
    {"resid_pdrop", "hidden_dropout_prob"},
    {"attn_pdrop", "attention_probs_dropout_prob"},
    {"rotary_emb_base", "rope_theta"},
};

// What the model of transformers has. Other values make another model.
std::vector<std::pair<const char*, Json>> fixed_of_nomic() {
  return {{"activation_function", "swiglu"},
          {"causal", false},
          {"mlp_fc1_bias", false},
          {"mlp_fc2_bias", false},
          {"parallel_block", false},
          {"prenorm", false},
          {"qkv_proj_bias", false},
          {"rotary_emb_fraction", 1.0},
          {"rotary_emb_interleaved", false},
          {"rotary_emb_scale_base", nullptr},
          {"rotary_scaling_factor", nullptr},
          {"scale_attn_weights", true},
          {"scale_attn_by_inverse_layer_idx", false},
          {"use_rms_norm", false},
          {"num_experts", 0}};
}

}  // namespace

Json with_keys_of_transformers(const Json& config, const std::string& place) {
  if (!config.is_object() || !config.contains("n_embd")) return config;
  Json renamed = config;
  for (const auto& [theirs, ours] : kNomicKeys) {
    if (config.contains(theirs)) renamed[ours] = config[theirs];
  }
  for (const auto& [key, value] : fixed_of_nomic()) {
    const auto given = config.find(key);
    if (given == config.end() || *given == value) continue;
    const bool means_no = given->is_null() && value == Json(false);
    require(means_no, "{}: key `{}` is {}; onebit's nomic-bert has {}", place, key,
            json_text(*given), json_text(value));
  }
  return renamed;
}

}  // namespace onebit::formats
