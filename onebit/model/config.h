// The shape and the arithmetic of one BERT model.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "onebit/base/config_keys.h"
#include "onebit/base/keys.h"
#include "onebit/ops/activation.h"

namespace onebit::model {

// Defaults are bert-base (Devlin et al., arXiv 1810.04805).
struct BertConfig {
  int64_t vocab_size = 30522;
  int64_t hidden_size = 768;
  int64_t layers = 12;
  int64_t heads = 12;
  int64_t intermediate_size = 3072;
  int64_t max_positions = 512;
  int64_t segments = 2;
  // Of the feed-forward part and the masked-word head: one of the two GELUs.
  ops::ActivationKind activation = ops::ActivationKind::kGeluErf;
  double hidden_dropout = 0.1;
  double attention_dropout = 0.1;
  double initializer_range = 0.02;
  double layer_norm_eps = 1e-12;
  // Normalise before each sublayer instead of after it, with one more norm at the end.
  bool pre_layer_norm = false;
  // Draw the last matrix of each sublayer with initializer_range / sqrt(2 * layers).
  bool residual_scaled_init = false;

  int64_t head_size() const { return hidden_size / heads; }
  // Vocabulary rows as stored: rounded up to 64 for the matrix products.
  int64_t stored_vocab_size() const { return (vocab_size + 63) / 64 * 64; }
  bool operator==(const BertConfig&) const = default;
};

// A size under its name in config.json and in recipes.
struct SizeKey {
  const char* name;
  int64_t BertConfig::*size;
};
inline constexpr SizeKey kSizeKeys[] = {
    {config_keys::kVocabSize, &BertConfig::vocab_size},
    {config_keys::kHiddenSize, &BertConfig::hidden_size},
    {config_keys::kLayers, &BertConfig::layers},
    {config_keys::kHeads, &BertConfig::heads},
    {config_keys::kIntermediateSize, &BertConfig::intermediate_size},
    {config_keys::kPositions, &BertConfig::max_positions},
    {config_keys::kSegments, &BertConfig::segments},
};

// Error: sizes that are not positive or do not divide, a probability outside [0, 1); `source` (the
// file or section) begins the message.
void validate(const BertConfig& config, const std::string& source);

// "bert-tiny", "bert-mini", "bert-small", "bert-medium", "bert-base", "bert-large" (Turc et al.,
// arXiv 1908.08962, for the small ones). Error: another name, with the nearest.
BertConfig preset(const std::string& name);
const std::vector<std::string>& preset_names();

// The model on the disk whose values a run starts from or resumes with.
struct StartingModel {
  BertConfig config;
  std::string place;  // for messages
};

// The `model` section of a recipe: `preset` is where it starts from (default bert-base), and every
// key of Hugging Face's config.json that shapes the model overrides it; and ours: pre_layer_norm,
// residual_scaled_init. Without a key vocab_size `vocab_size` is taken, or where that is not known
// BERT's. With `start`, keys that are not stated come from that model, `vocab_size` is not used,
// and what is stated must be as its values need it: sizes, activation, norms. Dropout and the range
// of initial values may differ. Errors: validate() refuses it; it contradicts `start`.
BertConfig read_config(Keys& section, std::optional<int64_t> vocab_size,
                       const StartingModel* start = nullptr);

}  // namespace onebit::model
