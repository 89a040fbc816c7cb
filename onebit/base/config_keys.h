// The names of a BERT's sizes and arithmetic in Hugging Face's config.json. Recipes have the same
// under `model`.
#pragma once

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
// Only in recipes: the file says it by its model_type.
inline constexpr const char* kPreLayerNorm = "pre_layer_norm";

}  // namespace onebit::config_keys
