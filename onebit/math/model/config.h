// The shape and the arithmetic of one encoder: a BERT or a model of a related family.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "onebit/ground/base/config_keys.h"
#include "onebit/ground/base/encoder_choices.h"
#include "onebit/ground/recipe/keys.h"
#include "onebit/math/ops/activation.h"

namespace onebit::model {

// Defaults are bert-base (Devlin et al., arXiv 1810.04805).
struct EncoderConfig {
  std::string family = "bert";  // the model_type of transformers
  int64_t vocab_size = 30522;
  int64_t hidden_size = 768;
  int64_t layers = 12;
  int64_t heads = 12;
  int64_t intermediate_size = 3072;
  int64_t max_positions = 512;  // tokens of the longest sequence
  int64_t segments = 2;         // 0: no table of segments. With one, every token is in it
  double hidden_dropout = 0.1;
  double attention_dropout = 0.1;
  double initializer_range = 0.02;
  double layer_norm_eps = 1e-12;
  // Initialise the last matrix of each sublayer with initializer_range / sqrt(2 * layers).
  bool residual_scaled_init = false;
  EncoderChoices choices;

  int64_t head_size() const { return hidden_size / heads; }
  // Stored rows of the vocabulary: rounded up to a multiple of 64 for the matrix products.
  int64_t stored_vocab_size() const { return (vocab_size + 63) / 64 * 64; }
  // Columns of the tables of embeddings.
  int64_t embedding_size() const {
    return choices.embedding_size > 0 ? choices.embedding_size : hidden_size;
  }
  bool has_projection() const { return embedding_size() != hidden_size; }
  // Rows of the table of positions.
  int64_t position_rows() const { return choices.first_position + max_positions; }
  // Whether a norm comes before the attention of layer 0.
  bool has_first_norm() const { return choices.norm_before && choices.first_attention_norm; }
  // transformers has a head for the next sentence in classes of BERT only.
  bool may_have_next_sentence() const { return family.starts_with("bert"); }
  // Columns of the feed-forward part before its activation.
  int64_t feed_in_size() const { return (choices.gated ? 2 : 1) * intermediate_size; }
  bool operator==(const EncoderConfig&) const = default;
};

// A size and its key in config.json and in recipes.
struct SizeKey {
  const char* name;
  int64_t EncoderConfig::*size;
};
inline constexpr SizeKey kSizeKeys[] = {
    {config_keys::kVocabSize, &EncoderConfig::vocab_size},
    {config_keys::kHiddenSize, &EncoderConfig::hidden_size},
    {config_keys::kLayers, &EncoderConfig::layers},
    {config_keys::kHeads, &EncoderConfig::heads},
    {config_keys::kIntermediateSize, &EncoderConfig::intermediate_size},
    {config_keys::kPositions, &EncoderConfig::max_positions},
    {config_keys::kSegments, &EncoderConfig::segments},
};

ops::ActivationKind kind_of(ChosenActivation activation);

// Error: a size that is not positive or not divisible as required, a probability outside [0, 1), a
// choice that contradicts another or a size. The message begins with `source` (file or section).
void validate(const EncoderConfig& config, const std::string& source);

// "bert-tiny", "bert-mini", "bert-small", "bert-medium", "bert-base", "bert-large" (Turc et al.,
// arXiv 1908.08962, for the small ones), and "modern-tiny" to "modern-large", with ModernBERT's
// choices. Error: an unknown name. The message suggests the nearest.
EncoderConfig preset(const std::string& name);
const std::vector<std::string>& preset_names();

// The model on disk whose values a run starts from or resumes with.
struct StartingModel {
  EncoderConfig config;
  std::string place;  // for messages
};

// Reads the `model` section of a recipe. `preset` sets the sizes and the family (default
// bert-base); every key of Hugging Face's config.json that shapes the model overrides it, and two
// keys of ours: pre_layer_norm, residual_scaled_init. Without a key vocab_size, `vocab_size` is
// used, or BERT's if that is not known. With `start`, absent keys come from that model,
// `vocab_size` is ignored, and given keys must fit its values: sizes, activation, norms, windows.
// Dropout, the range of initial values and the angles of rotary positions may differ, and with
// these the number of positions. Errors: validate() fails, or a key contradicts `start`.
EncoderConfig read_config(Keys& section, std::optional<int64_t> vocab_size,
                          const StartingModel* start = nullptr);

}  // namespace onebit::model
