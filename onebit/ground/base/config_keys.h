// The keys of Hugging Face's config.json for a BERT's sizes and arithmetic. The `model` section of
// recipes uses the same keys. Default names of labels, and how large a model may be.
#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>

namespace onebit::config_keys {

// Sizes.
inline constexpr const char* kVocabSize = "vocab_size";
inline constexpr const char* kHiddenSize = "hidden_size";
inline constexpr const char* kLayers = "num_hidden_layers";
inline constexpr const char* kHeads = "num_attention_heads";
inline constexpr const char* kIntermediateSize = "intermediate_size";
inline constexpr const char* kPositions = "max_position_embeddings";
inline constexpr const char* kSegments = "type_vocab_size";

// Arithmetic.
inline constexpr const char* kActivation = "hidden_act";
inline constexpr const char* kHiddenDropout = "hidden_dropout_prob";
inline constexpr const char* kAttentionDropout = "attention_probs_dropout_prob";
inline constexpr const char* kClassifierDropout = "classifier_dropout";
inline constexpr const char* kInitializerRange = "initializer_range";
inline constexpr const char* kLayerNormEps = "layer_norm_eps";
// ModernBERT's keys say which layers attend to the whole sequence, how many tokens the window of
// the others has, and the angles of rotary positions in both.
inline constexpr const char* kFullAttentionEvery = "global_attn_every_n_layers";
inline constexpr const char* kLocalAttention = "local_attention";
inline constexpr const char* kFullTheta = "global_rope_theta";
inline constexpr const char* kWindowTheta = "local_rope_theta";
// A key of recipes only: config.json expresses it by its model_type.
inline constexpr const char* kPreLayerNorm = "pre_layer_norm";

// The values of kActivation, by their names in transformers, and whether they compute GELU exactly
// or by its tanh approximation.
inline constexpr std::initializer_list<std::pair<const char*, bool>> kExactGelu = {
    {"gelu", true},       {"gelu_new", false},  {"gelu_tanh", false}, {"gelu_pytorch_tanh", false},
    {"gelu_fast", false}, {"gelu_python", true}};

}  // namespace onebit::config_keys

namespace onebit {

// transformers' names of a classifier's labels that have none: "LABEL_0", "LABEL_1".
std::string default_label(size_t id);

// Whether these are the default names, in their order.
bool are_default_labels(std::span<const std::string> labels);

// How large a BERT may be. Sizes come from files of others and from recipes: a size without a limit
// would make the number of parameters overflow, or a table of them fill the memory.

// The sizes of config.json and of a recipe's section `model`, by the keys above.
struct ModelSizes {
  int64_t vocab_size = 0, hidden_size = 0, layers = 0, heads = 0;
  int64_t intermediate_size = 0, positions = 0, segments = 0;
};

// The limit of one size, by its key.
int64_t largest_size(std::string_view key);

struct SizeFlaw {
  std::string key;     // one of the keys above
  std::string reason;  // "is 1000000, but must be at least 1 and at most 10000"
};

// The first size beyond its limit, else the largest one if all of them together make too many
// parameters. Empty: the model is possible.
std::optional<SizeFlaw> find_size_flaw(const ModelSizes& sizes);

}  // namespace onebit
