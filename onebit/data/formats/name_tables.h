// How different programs name the tensors of one BERT. onebit's names are Hugging Face's
// (BertForPreTraining and its task heads), and for pre-layer-norm encoders the names of DeepSpeed's
// BERT (PreAttentionLayerNorm, PostAttentionLayerNorm, FinalLayerNorm). Encoders of other families
// have the same names in onebit, and:
//   bert.embeddings_project            from the embeddings' width to the hidden size
//   bert.encoder.relative_attention_bias.weight  [buckets, heads], added to scores
//   ...intermediate.dense              gated: the rows of the gate, then those of the other factor
//   bert.pooler.dense, bert.pooler.LayerNorm  what precedes a classifier, also ModernBERT's
//   cls.predictions.decoder.weight     a decoder that is not the matrix of word embeddings
// Data only, used by name_map.h.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

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
  kTranspose,      // [in, out] there, [out, in] here
  kThirdOfRows,    // ours is part 0, 1 or 2 of three equal runs of its rows
  kHalfOfOurs,     // it is part 0 or 1 of two equal runs of our rows
  kSwappedHalves,  // the two halves of its rows are ours in the other order
  // Its rows are those of one attention head after the other: query, key, value. Rotary positions
  // turn its neighbouring rows of queries and keys, and row j and j + size / 2 of ours.
  kThirdOfHeads,
};

// transformers' kinds of classes by their heads. The values are bits.
enum class HeadClass : uint8_t {
  kEncoder = 1,
  kMaskedWords = 2,
  kSequence = 4,
  kTokens = 8,
  kSpan = 16,
  kOther = 32,
};
inline constexpr uint8_t kAnyHead = 63;

constexpr uint8_t bits_of(HeadClass head) {
  return static_cast<uint8_t>(head);
}

struct NameRow {
  // "{i}" stands for the layer's number. In a family's table names may end before ".weight" and
  // ".bias".
  std::string_view ours, theirs;
  Change change = Change::kNone;
  int part = 0;
  // The classes that have this name. A file is read with other classes' names, too, where they mean
  // one tensor only.
  uint8_t heads = kAnyHead;
  bool read_only = false;  // a spelling that is not written
};

// Two tables as one.
template <size_t N, size_t M>
constexpr std::array<NameRow, N + M> joined(const NameRow (&first)[N], const NameRow (&second)[M]) {
  std::array<NameRow, N + M> rows{};
  std::copy(first, first + N, rows.begin());
  std::copy(second, second + M, rows.begin() + N);
  return rows;
}

// The rows of a naming. `pre_layer_norm` selects the roles of the fused layer's norms. In PyTorch
// namings a tensor without a row has our name, in kGoogle it has no name.
std::span<const NameRow> name_rows(Naming naming, bool pre_layer_norm);

struct RowMatch {
  const NameRow* row;
  int index;                   // the layer's number
  std::string_view leaf = {};  // ".weight", where the row's name ends before it
};

// The rows of the table whose `side` matches `name`: none, one, or several for a fused tensor.
std::vector<RowMatch> matching_rows(std::span<const NameRow> rows, std::string_view NameRow::*side,
                                    std::string_view name);
// The name that a match gives to the tensor.
std::string filled(std::string_view pattern, const RowMatch& match);

// Fills `index` and returns true if `name` is `pattern` with a number for "{i}" (0 if the pattern
// has none).
bool matches_pattern(std::string_view pattern, std::string_view name, int& index);
std::string fill_pattern(std::string_view pattern, int index);

}  // namespace onebit::formats
