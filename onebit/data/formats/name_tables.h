// How different programs name the tensors of one BERT. onebit's names are Hugging Face's
// (BertForPreTraining and its task heads), and for pre-layer-norm encoders the names of DeepSpeed's
// BERT (PreAttentionLayerNorm, PostAttentionLayerNorm, FinalLayerNorm). Data only, used by
// name_map.h.
#pragma once

#include <span>
#include <string_view>

namespace onebit::formats {

enum class Naming {
  kHuggingFace,  // "bert.encoder.layer.0.intermediate.dense.weight"
  kGammaBeta,    // the same with LayerNorm.gamma and LayerNorm.beta, files of 2018-2019
  kPlain,        // NVIDIA and DeepSpeed, unfused layer: "...intermediate.dense_act.weight"
  kFused,        // DeepSpeed's fused layer: "bert.encoder.layer.0.attn_qkvw"
  kGoogle,       // TensorFlow 1: "bert/encoder/layer_0/intermediate/dense/kernel"
};

std::string_view name_of(Naming naming);

// How another program's tensor contains ours.
enum class Change {
  kNone,
  kTranspose,    // [in, out] there, [out, in] here
  kThirdOfRows,  // ours is part 0, 1 or 2 of three equal runs of its rows
};

struct NameRow {
  std::string_view ours, theirs;  // "{i}" stands for the layer's number
  Change change = Change::kNone;
  int part = 0;
};

// The rows of a naming. `pre_layer_norm` selects the roles of the fused layer's norms. In PyTorch
// namings a tensor without a row has our name, in kGoogle it has no name.
std::span<const NameRow> name_rows(Naming naming, bool pre_layer_norm);

// Fills `index` and returns true if `name` is `pattern` with a number for "{i}" (0 if the pattern
// has none).
bool matches_pattern(std::string_view pattern, std::string_view name, int& index);
std::string fill_pattern(std::string_view pattern, int index);

}  // namespace onebit::formats
