// How the families other than BERT name their tensors (families.h). Data only.
#pragma once

#include <cstdint>
#include <string_view>

#include "onebit/data/formats/name_tables.h"

namespace onebit::formats {

inline constexpr uint8_t kWords = bits_of(HeadClass::kMaskedWords);
inline constexpr uint8_t kSequence = bits_of(HeadClass::kSequence);
inline constexpr uint8_t kSpan = bits_of(HeadClass::kSpan);
inline constexpr uint8_t kLabels = kSequence | kSpan | bits_of(HeadClass::kTokens);

inline constexpr std::string_view kBertParts[] = {"embeddings.", "encoder.", "pooler."};
inline constexpr std::string_view kRobertaPreLayerNormParts[] = {"embeddings.", "encoder.",
                                                                 "LayerNorm.", "pooler."};
inline constexpr std::string_view kElectraParts[] = {"embeddings.", "embeddings_project.",
                                                     "encoder."};
inline constexpr std::string_view kDistilBertParts[] = {"embeddings.", "transformer."};
inline constexpr std::string_view kNomicParts[] = {"embeddings.", "emb_ln.", "encoder.", "layers.",
                                                   "pooler."};
inline constexpr std::string_view kGteParts[] = {"embeddings.", "encoder.", "layers.", "pooler."};
inline constexpr std::string_view kModernParts[] = {"embeddings.", "layers.", "final_norm."};
inline constexpr std::string_view kNeoParts[] = {"encoder.", "transformer_encoder.", "layer_norm."};

// In these tables the encoder's names begin with "bert." on both sides.

inline constexpr NameRow kRobertaRows[] = {
    {"cls.predictions.transform.dense", "lm_head.dense"},
    {"cls.predictions.transform.LayerNorm", "lm_head.layer_norm"},
    {"cls.predictions.decoder", "lm_head.decoder"},
    {"cls.predictions.bias", "lm_head.bias"},
    {"bert.pooler.dense", "classifier.dense", Change::kNone, 0, kSequence},
    {"classifier", "classifier.out_proj", Change::kNone, 0, kSequence},
};

inline constexpr NameRow kNormsBeforeRows[] = {
    {"bert.encoder.layer.{i}.PreAttentionLayerNorm", "bert.encoder.layer.{i}.attention.LayerNorm"},
    {"bert.encoder.layer.{i}.PostAttentionLayerNorm",
     "bert.encoder.layer.{i}.intermediate.LayerNorm"},
    {"bert.encoder.FinalLayerNorm", "bert.LayerNorm"},
};
inline constexpr auto kRobertaPreLayerNormRows = joined(kRobertaRows, kNormsBeforeRows);

inline constexpr NameRow kElectraRows[] = {
    {"cls.predictions.transform.dense", "generator_predictions.dense"},
    {"cls.predictions.transform.LayerNorm", "generator_predictions.LayerNorm"},
    {"cls.predictions.decoder.weight", "generator_lm_head.weight"},
    {"cls.predictions.bias", "generator_lm_head.bias"},
    {"bert.pooler.dense", "classifier.dense", Change::kNone, 0, kSequence},
    {"classifier", "classifier.out_proj", Change::kNone, 0, kSequence},
};

inline constexpr NameRow kDistilBertRows[] = {
    {"bert.encoder.layer.{i}.attention.self.query", "bert.transformer.layer.{i}.attention.q_lin"},
    {"bert.encoder.layer.{i}.attention.self.key", "bert.transformer.layer.{i}.attention.k_lin"},
    {"bert.encoder.layer.{i}.attention.self.value", "bert.transformer.layer.{i}.attention.v_lin"},
    {"bert.encoder.layer.{i}.attention.output.dense",
     "bert.transformer.layer.{i}.attention.out_lin"},
    {"bert.encoder.layer.{i}.attention.output.LayerNorm",
     "bert.transformer.layer.{i}.sa_layer_norm"},
    {"bert.encoder.layer.{i}.intermediate.dense", "bert.transformer.layer.{i}.ffn.lin1"},
    {"bert.encoder.layer.{i}.output.dense", "bert.transformer.layer.{i}.ffn.lin2"},
    {"bert.encoder.layer.{i}.output.LayerNorm", "bert.transformer.layer.{i}.output_layer_norm"},
    {"cls.predictions.transform.dense", "vocab_transform"},
    {"cls.predictions.transform.LayerNorm", "vocab_layer_norm"},
    {"cls.predictions.decoder.weight", "vocab_projector.weight"},
    {"cls.predictions.bias", "vocab_projector.bias"},
    {"bert.pooler.dense", "pre_classifier"},
};

inline constexpr NameRow kMpnetRows[] = {
    {"bert.encoder.layer.{i}.attention.self.query", "bert.encoder.layer.{i}.attention.attn.q"},
    {"bert.encoder.layer.{i}.attention.self.key", "bert.encoder.layer.{i}.attention.attn.k"},
    {"bert.encoder.layer.{i}.attention.self.value", "bert.encoder.layer.{i}.attention.attn.v"},
    {"bert.encoder.layer.{i}.attention.output.dense", "bert.encoder.layer.{i}.attention.attn.o"},
    {"bert.encoder.layer.{i}.attention.output.LayerNorm",
     "bert.encoder.layer.{i}.attention.LayerNorm"},
    {"cls.predictions.transform.dense", "lm_head.dense"},
    {"cls.predictions.transform.LayerNorm", "lm_head.layer_norm"},
    {"cls.predictions.decoder", "lm_head.decoder"},
    {"cls.predictions.bias", "lm_head.bias"},
    {"bert.pooler.dense", "classifier.dense", Change::kNone, 0, kSequence},
    {"classifier", "classifier.out_proj", Change::kNone, 0, kSequence},
};

constexpr NameRow read_only(NameRow row) {
  row.read_only = true;
  return row;
}

// Layers as the classes of transformers name them. It writes nomic-bert and GTE under the names of
// their first programs.
inline constexpr NameRow kClassRows[] = {
    read_only({"bert.encoder.layer.{i}.attention.self.query", "bert.layers.{i}.self_attn.q_proj"}),
    read_only({"bert.encoder.layer.{i}.attention.self.key", "bert.layers.{i}.self_attn.k_proj"}),
    read_only({"bert.encoder.layer.{i}.attention.self.value", "bert.layers.{i}.self_attn.v_proj"}),
    read_only(
        {"bert.encoder.layer.{i}.attention.output.dense", "bert.layers.{i}.self_attn.o_proj"}),
    read_only({"bert.encoder.layer.{i}.attention.output.LayerNorm",
               "bert.layers.{i}.post_attention_layernorm"}),
    read_only({"bert.encoder.layer.{i}.intermediate.dense", "bert.layers.{i}.mlp.gate_proj",
               Change::kHalfOfOurs}),
    read_only({"bert.encoder.layer.{i}.intermediate.dense", "bert.layers.{i}.mlp.up_proj",
               Change::kHalfOfOurs, 1}),
    read_only({"bert.encoder.layer.{i}.output.dense", "bert.layers.{i}.mlp.down_proj"}),
    read_only({"bert.encoder.layer.{i}.output.LayerNorm", "bert.layers.{i}.post_mlp_layernorm"}),
};

inline constexpr NameRow kNomicFileRows[] = {
    {"bert.embeddings.LayerNorm", "bert.emb_ln"},
    {"bert.encoder.layer.{i}.attention.self.query", "bert.encoder.layers.{i}.attn.Wqkv",
     Change::kThirdOfRows},
    {"bert.encoder.layer.{i}.attention.self.key", "bert.encoder.layers.{i}.attn.Wqkv",
     Change::kThirdOfRows, 1},
    {"bert.encoder.layer.{i}.attention.self.value", "bert.encoder.layers.{i}.attn.Wqkv",
     Change::kThirdOfRows, 2},
    {"bert.encoder.layer.{i}.attention.output.dense", "bert.encoder.layers.{i}.attn.out_proj"},
    {"bert.encoder.layer.{i}.attention.output.LayerNorm", "bert.encoder.layers.{i}.norm1"},
    {"bert.encoder.layer.{i}.intermediate.dense", "bert.encoder.layers.{i}.mlp.fc12",
     Change::kHalfOfOurs},
    {"bert.encoder.layer.{i}.intermediate.dense", "bert.encoder.layers.{i}.mlp.fc11",
     Change::kHalfOfOurs, 1},
    {"bert.encoder.layer.{i}.output.dense", "bert.encoder.layers.{i}.mlp.fc2"},
    {"bert.encoder.layer.{i}.output.LayerNorm", "bert.encoder.layers.{i}.norm2"},
    {"cls.predictions.transform.LayerNorm", "cls.predictions.transform.layer_norm"},
};
inline constexpr auto kNomicRows = joined(kNomicFileRows, kClassRows);

inline constexpr NameRow kGteFileRows[] = {
    {"bert.encoder.layer.{i}.attention.self.query", "bert.encoder.layer.{i}.attention.qkv_proj",
     Change::kThirdOfRows},
    {"bert.encoder.layer.{i}.attention.self.key", "bert.encoder.layer.{i}.attention.qkv_proj",
     Change::kThirdOfRows, 1},
    {"bert.encoder.layer.{i}.attention.self.value", "bert.encoder.layer.{i}.attention.qkv_proj",
     Change::kThirdOfRows, 2},
    {"bert.encoder.layer.{i}.attention.output.dense", "bert.encoder.layer.{i}.attention.o_proj"},
    {"bert.encoder.layer.{i}.attention.output.LayerNorm", "bert.encoder.layer.{i}.attn_ln"},
    {"bert.encoder.layer.{i}.intermediate.dense", "bert.encoder.layer.{i}.mlp.up_gate_proj",
     Change::kSwappedHalves},
    {"bert.encoder.layer.{i}.output.dense", "bert.encoder.layer.{i}.mlp.down_proj"},
    {"bert.encoder.layer.{i}.output.LayerNorm", "bert.encoder.layer.{i}.mlp_ln"},
    {"cls.predictions.transform.dense", "lm_head.dense"},
    {"cls.predictions.transform.LayerNorm", "lm_head.norm"},
    {"cls.predictions.decoder.weight", "lm_head.decoder.weight"},
    {"cls.predictions.bias", "lm_head.decoder.bias"},
    read_only({"cls.predictions.transform.LayerNorm", "lm_head.layer_norm"}),
};
inline constexpr auto kGteRows = joined(kGteFileRows, kClassRows);

inline constexpr NameRow kModernRows[] = {
    {"bert.embeddings.word_embeddings", "bert.embeddings.tok_embeddings"},
    {"bert.embeddings.LayerNorm", "bert.embeddings.norm"},
    {"bert.encoder.layer.{i}.PreAttentionLayerNorm", "bert.layers.{i}.attn_norm"},
    {"bert.encoder.layer.{i}.attention.self.query", "bert.layers.{i}.attn.Wqkv",
     Change::kThirdOfRows},
    {"bert.encoder.layer.{i}.attention.self.key", "bert.layers.{i}.attn.Wqkv", Change::kThirdOfRows,
     1},
    {"bert.encoder.layer.{i}.attention.self.value", "bert.layers.{i}.attn.Wqkv",
     Change::kThirdOfRows, 2},
    {"bert.encoder.layer.{i}.attention.output.dense", "bert.layers.{i}.attn.Wo"},
    {"bert.encoder.layer.{i}.PostAttentionLayerNorm", "bert.layers.{i}.mlp_norm"},
    {"bert.encoder.layer.{i}.intermediate.dense", "bert.layers.{i}.mlp.Wi"},
    {"bert.encoder.layer.{i}.output.dense", "bert.layers.{i}.mlp.Wo"},
    {"bert.encoder.FinalLayerNorm", "bert.final_norm"},
    {"cls.predictions.transform.dense", "head.dense", Change::kNone, 0, kWords},
    {"cls.predictions.transform.LayerNorm", "head.norm", Change::kNone, 0, kWords},
    {"cls.predictions.decoder.weight", "decoder.weight"},
    {"cls.predictions.bias", "decoder.bias"},
    {"bert.pooler.dense", "head.dense", Change::kNone, 0, kLabels},
    {"bert.pooler.LayerNorm", "head.norm", Change::kNone, 0, kLabels},
    {"classifier", "classifier", Change::kNone, 0, kAnyHead ^ kSpan},
    {"qa_outputs", "classifier", Change::kNone, 0, kSpan},
};

inline constexpr NameRow kNeoRows[] = {
    {"bert.embeddings.word_embeddings", "bert.encoder"},
    {"bert.encoder.layer.{i}.PreAttentionLayerNorm", "bert.transformer_encoder.{i}.attention_norm"},
    {"bert.encoder.layer.{i}.attention.self.query", "bert.transformer_encoder.{i}.qkv",
     Change::kThirdOfHeads},
    {"bert.encoder.layer.{i}.attention.self.key", "bert.transformer_encoder.{i}.qkv",
     Change::kThirdOfHeads, 1},
    {"bert.encoder.layer.{i}.attention.self.value", "bert.transformer_encoder.{i}.qkv",
     Change::kThirdOfHeads, 2},
    {"bert.encoder.layer.{i}.attention.output.dense", "bert.transformer_encoder.{i}.wo"},
    {"bert.encoder.layer.{i}.PostAttentionLayerNorm", "bert.transformer_encoder.{i}.ffn_norm"},
    {"bert.encoder.layer.{i}.intermediate.dense", "bert.transformer_encoder.{i}.ffn.w12"},
    {"bert.encoder.layer.{i}.output.dense", "bert.transformer_encoder.{i}.ffn.w3"},
    {"bert.encoder.FinalLayerNorm", "bert.layer_norm"},
    {"cls.predictions.decoder.weight", "decoder.weight"},
    {"cls.predictions.bias", "decoder.bias"},
    {"bert.pooler.dense", "dense"},
};

}  // namespace onebit::formats
