// The keys of Hugging Face's config.json for a BERT's sizes and arithmetic. The `model` section of
// recipes uses the same keys.
#pragma once

#include <initializer_list>
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
// A key of recipes only: config.json expresses it by its model_type.
inline constexpr const char* kPreLayerNorm = "pre_layer_norm";

// The values of kActivation, by their names in transformers, and whether they compute GELU exactly
// or by its tanh approximation.
inline constexpr std::initializer_list<std::pair<const char*, bool>> kExactGelu = {
    {"gelu", true},       {"gelu_new", false},  {"gelu_tanh", false}, {"gelu_pytorch_tanh", false},
    {"gelu_fast", false}, {"gelu_python", true}};

}  // namespace onebit::config_keys
