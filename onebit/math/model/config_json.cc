#include "onebit/math/model/config.h"

#include "onebit/ground/base/config_keys.h"

namespace onebit::model {
namespace {

using ops::ActivationKind;

Limits limits_of(const char* name) {
  return at_least(1).up_to(static_cast<double>(largest_size(name)));
}

void read_sizes(Keys& section, BertConfig& config) {
  const auto size = [&](const char* name, int64_t& value, const char* meaning) {
    section.integer(name, value, limits_of(name), {meaning, "the model's or the preset's"});
  };
  size(config_keys::kHiddenSize, config.hidden_size,
       "width of the encoder, a multiple of the heads");
  size(config_keys::kLayers, config.layers, "encoder layers");
  size(config_keys::kHeads, config.heads, "attention heads per layer");
  size(config_keys::kIntermediateSize, config.intermediate_size,
       "width inside the feed-forward part");
  section.integer(config_keys::kPositions, config.max_positions, limits_of(config_keys::kPositions),
                  "the longest sequence, in tokens");
  section.integer(config_keys::kSegments, config.segments, limits_of(config_keys::kSegments),
                  "segments (token types): the two sentences of a pair");
}

void read_arithmetic(Keys& section, BertConfig& config) {
  bool exact = config.activation == ActivationKind::kGeluErf;
  section.choice(config_keys::kActivation, exact, config_keys::kExactGelu,
                 "activation of the feed-forward part. gelu and gelu_python are exact, the others "
                 "use the tanh approximation");
  config.activation = exact ? ActivationKind::kGeluErf : ActivationKind::kGeluTanh;
  section.number(config_keys::kHiddenDropout, config.hidden_dropout, at_least(0).below(1),
                 "dropout after embeddings and sublayers");
  section.number(config_keys::kAttentionDropout, config.attention_dropout, at_least(0).below(1),
                 "dropout of attention probabilities");
  section.number(config_keys::kInitializerRange, config.initializer_range, above(0),
                 "standard deviation of initial weights");
  section.number(config_keys::kLayerNormEps, config.layer_norm_eps, above(0),
                 "added to the variance in layer norms");
  section.boolean(config_keys::kPreLayerNorm, config.pre_layer_norm,
                  "layer norm before each sublayer instead of after it, and one at the end");
  section.boolean("residual_scaled_init", config.residual_scaled_init,
                  "initialize the last matrix of each sublayer with a standard deviation smaller "
                  "by sqrt(2 * layers)");
}

void take_sizes(const std::string& preset_name, BertConfig& config) {
  const BertConfig sizes = preset(preset_name);
  config.layers = sizes.layers;
  config.hidden_size = sizes.hidden_size;
  config.heads = sizes.heads;
  config.intermediate_size = sizes.intermediate_size;
}

const char* word_of(ActivationKind kind) {
  return kind == ActivationKind::kGeluErf ? "gelu" : "gelu_new";
}

// Checks the keys without which the values of a model are meaningless.
void require_as_started(Keys& section, const std::string& preset_name, const BertConfig& config,
                        const StartingModel& start) {
  const auto same = [&](const char* name, const auto& here, const auto& there) {
    constexpr const char* kFix = "remove the key; the model's value is used";
    if (here == there) return;
    if (section.has(name)) {
      section.require(false, name, "is {}, but the model {} has {}: {}", here, start.place, there,
                      kFix);
    } else {
      section.require(false, "preset", "is {}, whose {} is {}, but the model {} has {}: {}",
                      preset_name, name, here, start.place, there, kFix);
    }
  };
  const BertConfig& model = start.config;
  for (const auto& [name, size] : kSizeKeys) same(name, config.*size, model.*size);
  same(config_keys::kActivation, std::string(word_of(config.activation)),
       std::string(word_of(model.activation)));
  same(config_keys::kLayerNormEps, config.layer_norm_eps, model.layer_norm_eps);
  same(config_keys::kPreLayerNorm, config.pre_layer_norm, model.pre_layer_norm);
}

}  // namespace

BertConfig read_config(Keys& section, std::optional<int64_t> vocab_size,
                       const StartingModel* start) {
  std::string name = start == nullptr ? "bert-base" : "";
  section.word("preset", name, preset_names(), "default sizes if no model is given");
  BertConfig config = start == nullptr ? BertConfig() : start->config;
  section.attempt([&] {
    if (!name.empty()) take_sizes(name, config);
  });
  read_sizes(section, config);
  read_arithmetic(section, config);
  if (start == nullptr) config.vocab_size = vocab_size.value_or(config.vocab_size);
  section.integer(config_keys::kVocabSize, config.vocab_size, limits_of(config_keys::kVocabSize),
                  {"tokens of the vocabulary", "the model's or the token store's"});
  if (start != nullptr) require_as_started(section, name, config, *start);
  section.attempt([&] { validate(config, section.place("*")); });
  return config;
}

}  // namespace onebit::model
