#include "onebit/math/model/config.h"

#include <algorithm>
#include <initializer_list>
#include <utility>

#include "onebit/data/formats/families.h"
#include "onebit/ground/base/config_keys.h"
#include "onebit/ground/base/wording.h"

namespace onebit::model {

namespace {

struct Preset {
  const char* name;
  int64_t layers, hidden_size, intermediate_size;
  bool is_modern = false;
};

// In all presets a head has 64 columns. modern-base and modern-large are ModernBERT's (Warner et
// al., arXiv 2412.13663), and the smaller ones but the smallest Ettin's (Weller et al., arXiv
// 2507.11412).
constexpr Preset kPresets[] = {
    {"bert-tiny", 2, 128, 512},           {"bert-mini", 4, 256, 1024},
    {"bert-small", 4, 512, 2048},         {"bert-medium", 8, 512, 2048},
    {"bert-base", 12, 768, 3072},         {"bert-large", 24, 1024, 4096},
    {"modern-tiny", 4, 128, 192, true},   {"modern-mini", 7, 256, 384, true},
    {"modern-small", 10, 384, 576, true}, {"modern-medium", 19, 512, 768, true},
    {"modern-base", 22, 768, 1152, true}, {"modern-large", 28, 1024, 2624, true},
};

EncoderConfig modern_config() {
  constexpr const char* kFamily = "modernbert";
  return {.family = kFamily,
          .max_positions = 8192,
          .segments = 0,
          .hidden_dropout = 0,
          .attention_dropout = 0,
          .layer_norm_eps = 1e-5,
          .residual_scaled_init = true,
          .choices = formats::find_family(kFamily, kFamily).choices};
}

// Names of transformers.
constexpr std::initializer_list<std::pair<const char*, ChosenActivation>> kActivations = {
    {"gelu", ChosenActivation::kGeluErf},       {"gelu_new", ChosenActivation::kGeluTanh},
    {"gelu_tanh", ChosenActivation::kGeluTanh}, {"gelu_pytorch_tanh", ChosenActivation::kGeluTanh},
    {"gelu_fast", ChosenActivation::kGeluTanh}, {"gelu_python", ChosenActivation::kGeluErf},
    {"relu", ChosenActivation::kRelu},          {"silu", ChosenActivation::kSwish},
    {"swish", ChosenActivation::kSwish}};

}  // namespace

ops::ActivationKind kind_of(ChosenActivation activation) {
  using ops::ActivationKind;
  switch (activation) {
    case ChosenActivation::kGeluErf:
      return ActivationKind::kGeluErf;
    case ChosenActivation::kGeluTanh:
      return ActivationKind::kGeluTanh;
    case ChosenActivation::kRelu:
      return ActivationKind::kRelu;
    case ChosenActivation::kSwish:
      return ActivationKind::kSwish;
    case ChosenActivation::kTanh:
      return ActivationKind::kTanh;
  }
  ONEBIT_INVARIANT(false);
}

namespace {

void validate_choices(const EncoderConfig& config, const std::string& source) {
  const EncoderChoices& choices = config.choices;
  require(choices.activation != ChosenActivation::kTanh &&
              choices.head_activation != ChosenActivation::kTanh,
          "{}: the activation of the feed-forward part and of the masked-word head cannot be tanh",
          source);
  require(choices.rotary_theta == 0 || config.head_size() % 2 == 0,
          "{}: a head has {} columns; rotary positions turn pairs of them. Choose an even "
          "hidden_size / num_attention_heads",
          source, config.head_size());
  require(choices.rotary_theta >= 0 && choices.window_theta >= 0 && choices.window >= 0 &&
              choices.full_attention_every >= 1,
          "{}: the angles of rotary positions and the window of attention must be at least 0",
          source);
  require(choices.full_attention_every == 1 || choices.window > 0,
          "{}: every layer but each {}th attends to a window, and the window has no size", source,
          choices.full_attention_every);
}

}  // namespace

void validate(const EncoderConfig& config, const std::string& source) {
  const auto flaw = find_size_flaw({.vocab_size = config.vocab_size,
                                    .hidden_size = config.hidden_size,
                                    .layers = config.layers,
                                    .heads = config.heads,
                                    .intermediate_size = config.intermediate_size,
                                    .positions = config.max_positions,
                                    // A family may have no table of segments.
                                    .segments = std::max<int64_t>(1, config.segments)});
  require(!flaw, "{}: the model's {} {}", source, flaw ? flaw->key : "", flaw ? flaw->reason : "");
  require(config.hidden_size % config.heads == 0,
          "{}: hidden_size {} is not divisible by {} attention heads; choose a divisor of "
          "hidden_size as num_attention_heads",
          source, config.hidden_size, config.heads);
  const auto probability = [&](double value, const char* name) {
    require(value >= 0 && value < 1, "{}: {} is {}; a dropout probability is in [0, 1)", source,
            name, value);
  };
  probability(config.hidden_dropout, config_keys::kHiddenDropout);
  probability(config.attention_dropout, config_keys::kAttentionDropout);
  require(config.initializer_range > 0, "{}: initializer_range is {}; it must be above 0", source,
          config.initializer_range);
  require(config.layer_norm_eps > 0, "{}: layer_norm_eps is {}; it must be above 0", source,
          config.layer_norm_eps);
  validate_choices(config, source);
}

const std::vector<std::string>& preset_names() {
  static const std::vector<std::string> names = [] {
    std::vector<std::string> result;
    for (const Preset& entry : kPresets) result.emplace_back(entry.name);
    return result;
  }();
  return names;
}

EncoderConfig preset(const std::string& name) {
  for (const Preset& entry : kPresets) {
    if (name != entry.name) continue;
    EncoderConfig config = entry.is_modern ? modern_config() : EncoderConfig();
    config.layers = entry.layers;
    config.hidden_size = entry.hidden_size;
    config.heads = entry.hidden_size / 64;
    config.intermediate_size = entry.intermediate_size;
    return config;
  }
  const std::string near = nearest_word(name, preset_names());
  fail("unknown model preset \"{}\"; known: {}{}", name, fmt::join(preset_names(), ", "),
       near.empty() ? "" : fmt::format(" (did you mean \"{}\"?)", near));
}

namespace {

Limits limits_of(const char* name) {
  return at_least(1).up_to(static_cast<double>(largest_size(name)));
}

void read_sizes(Keys& section, EncoderConfig& config) {
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
  if (config.segments == 0) return;
  section.integer(config_keys::kSegments, config.segments, limits_of(config_keys::kSegments),
                  "segments (token types): the two sentences of a pair");
}

void read_arithmetic(Keys& section, EncoderConfig& config) {
  ChosenActivation& activation = config.choices.activation;
  const bool same_in_head = config.choices.head_activation == activation;
  section.choice(config_keys::kActivation, activation, kActivations,
                 "activation of the feed-forward part. gelu and gelu_python are exact, the other "
                 "forms of gelu use the tanh approximation");
  if (same_in_head) config.choices.head_activation = activation;
  section.number(config_keys::kHiddenDropout, config.hidden_dropout, at_least(0).below(1),
                 "dropout after embeddings and sublayers");
  section.number(config_keys::kAttentionDropout, config.attention_dropout, at_least(0).below(1),
                 "dropout of attention probabilities");
  section.number(config_keys::kInitializerRange, config.initializer_range, above(0),
                 "standard deviation of initial weights");
  section.number(config_keys::kLayerNormEps, config.layer_norm_eps, above(0),
                 "added to the variance in layer norms");
  if (config.family == EncoderConfig().family) {
    section.boolean(config_keys::kPreLayerNorm, config.choices.norm_before,
                    "layer norm before each sublayer instead of after it, and one at the end");
  }
  section.boolean("residual_scaled_init", config.residual_scaled_init,
                  "initialize the last matrix of each sublayer with a standard deviation smaller "
                  "by sqrt(2 * layers)");
}

// Windows and angles, of a family that has them.
void read_windows(Keys& section, EncoderConfig& config) {
  EncoderChoices& choices = config.choices;
  const bool has_windows =
      formats::find_family(config.family, config.family).rotary == formats::RotaryKeys::kByWindow;
  std::optional<int64_t> every, width;
  std::optional<double> full_theta, window_theta;
  if (has_windows) {
    every = choices.full_attention_every;
    width = 2 * choices.window;
    full_theta = choices.rotary_theta;
    window_theta = choices.window_theta;
  }
  constexpr const char* kOtherwise = "the model's or the preset's, if it has windows";
  section.integer(
      config_keys::kFullAttentionEvery, every, at_least(1),
      {"layer 0 and then every n-th attend to the whole sequence, the others to a window",
       kOtherwise});
  section.integer(config_keys::kLocalAttention, width,
                  at_least(2).up_to(static_cast<double>(largest_size(config_keys::kPositions))),
                  {"tokens of a window, an even number: half of them on either side", kOtherwise});
  section.number(config_keys::kFullTheta, full_theta, above(0),
                 {"base of the angles of rotary positions in layers without a window", kOtherwise});
  section.number(config_keys::kWindowTheta, window_theta, above(0),
                 {"the same in layers with a window", kOtherwise});
  for (const char* key : {config_keys::kFullAttentionEvery, config_keys::kLocalAttention,
                          config_keys::kFullTheta, config_keys::kWindowTheta}) {
    section.require(has_windows || !section.has(key), key,
                    "is given, but a {} has no windows: remove it, or choose a preset that has "
                    "them (modern-base)",
                    config.family);
  }
  const int64_t tokens = width.value_or(0);
  section.require(tokens % 2 == 0, config_keys::kLocalAttention,
                  "is {}; it must be an even number of tokens, half of them on either side",
                  tokens);
  if (!has_windows) return;
  choices.full_attention_every = *every;
  choices.window = tokens / 2;
  choices.rotary_theta = *full_theta;
  choices.window_theta = *window_theta;
}

// Takes the sizes of a preset, and its family, too, if there is no model to start from.
void take_preset(const std::string& preset_name, bool is_first, EncoderConfig& config) {
  const EncoderConfig sizes = preset(preset_name);
  if (is_first) config = sizes;
  config.layers = sizes.layers;
  config.hidden_size = sizes.hidden_size;
  config.heads = sizes.heads;
  config.intermediate_size = sizes.intermediate_size;
}

const char* word_of(ChosenActivation activation) {
  const auto* found = std::find_if(kActivations.begin(), kActivations.end(),
                                   [&](const auto& word) { return word.second == activation; });
  return found == kActivations.end() ? "tanh" : found->first;
}

// Checks the keys without which the values of a model are meaningless.
void require_as_started(Keys& section, const std::string& preset_name, const EncoderConfig& config,
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
  const EncoderConfig& model = start.config;
  section.attempt([&] {  // an unknown preset is reported already
    if (preset_name.empty()) return;
    const std::string family = preset(preset_name).family;
    section.require(family == model.family, "preset", "is {}, a {}, but the model {} is a {}: {}",
                    preset_name, family, start.place, model.family,
                    "remove the key; the model's value is used");
  });
  for (const auto& [name, size] : kSizeKeys) {
    // Without a table of positions, a model may be trained on longer sequences.
    if (name == config_keys::kPositions && !model.choices.position_table) continue;
    same(name, config.*size, model.*size);
  }
  same(config_keys::kFullAttentionEvery, config.choices.full_attention_every,
       model.choices.full_attention_every);
  same(config_keys::kLocalAttention, 2 * config.choices.window, 2 * model.choices.window);
  same(config_keys::kActivation, std::string(word_of(config.choices.activation)),
       std::string(word_of(model.choices.activation)));
  same(config_keys::kLayerNormEps, config.layer_norm_eps, model.layer_norm_eps);
  same(config_keys::kPreLayerNorm, config.choices.norm_before, model.choices.norm_before);
}

}  // namespace

EncoderConfig read_config(Keys& section, std::optional<int64_t> vocab_size,
                          const StartingModel* start) {
  std::string name = start == nullptr ? "bert-base" : "";
  section.word("preset", name, preset_names(), "default sizes and family if no model is given");
  EncoderConfig config = start == nullptr ? EncoderConfig() : start->config;
  section.attempt([&] {
    if (!name.empty()) take_preset(name, start == nullptr, config);
  });
  read_sizes(section, config);
  read_arithmetic(section, config);
  read_windows(section, config);
  if (start == nullptr) config.vocab_size = vocab_size.value_or(config.vocab_size);
  section.integer(config_keys::kVocabSize, config.vocab_size, limits_of(config_keys::kVocabSize),
                  {"tokens of the vocabulary", "the model's or the token store's"});
  if (start != nullptr) require_as_started(section, name, config, *start);
  section.attempt([&] { validate(config, section.place("*")); });
  return config;
}

}  // namespace onebit::model
