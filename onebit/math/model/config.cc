#include "onebit/math/model/config.h"

#include "onebit/ground/base/config_keys.h"
#include "onebit/ground/base/wording.h"

namespace onebit::model {
namespace {

struct Preset {
  const char* name;
  int64_t layers, hidden_size;
};

// In all presets a head has 64 columns and the feed-forward part is four times as wide as the
// model.
constexpr Preset kPresets[] = {
    {"bert-tiny", 2, 128},   {"bert-mini", 4, 256},  {"bert-small", 4, 512},
    {"bert-medium", 8, 512}, {"bert-base", 12, 768}, {"bert-large", 24, 1024},
};

}  // namespace

void validate(const BertConfig& config, const std::string& source) {
  const auto flaw = find_size_flaw({.vocab_size = config.vocab_size,
                                    .hidden_size = config.hidden_size,
                                    .layers = config.layers,
                                    .heads = config.heads,
                                    .intermediate_size = config.intermediate_size,
                                    .positions = config.max_positions,
                                    .segments = config.segments});
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
  require(config.activation == ops::ActivationKind::kGeluErf ||
              config.activation == ops::ActivationKind::kGeluTanh,
          "{}: hidden_act must be a form of GELU: gelu, or gelu_new (its tanh approximation)",
          source);
  require(config.initializer_range > 0, "{}: initializer_range is {}; it must be above 0", source,
          config.initializer_range);
  require(config.layer_norm_eps > 0, "{}: layer_norm_eps is {}; it must be above 0", source,
          config.layer_norm_eps);
}

const std::vector<std::string>& preset_names() {
  static const std::vector<std::string> names = [] {
    std::vector<std::string> result;
    for (const Preset& entry : kPresets) result.emplace_back(entry.name);
    return result;
  }();
  return names;
}

BertConfig preset(const std::string& name) {
  for (const Preset& entry : kPresets) {
    if (name != entry.name) continue;
    BertConfig config;
    config.layers = entry.layers;
    config.hidden_size = entry.hidden_size;
    config.heads = entry.hidden_size / 64;
    config.intermediate_size = 4 * entry.hidden_size;
    return config;
  }
  const std::string near = nearest_word(name, preset_names());
  fail("unknown model preset \"{}\"; known: {}{}", name, fmt::join(preset_names(), ", "),
       near.empty() ? "" : fmt::format(" (did you mean \"{}\"?)", near));
}

}  // namespace onebit::model
