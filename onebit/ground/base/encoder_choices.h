// What encoders compute differently from one family to another: RoBERTa, DistilBERT, ELECTRA,
// MPNet, nomic-bert, GTE, ModernBERT, NeoBERT. The sizes of a model are elsewhere. A family of
// transformers is one set of these choices (formats/families.h).
#pragma once

#include <cstdint>

namespace onebit {

enum class NormKind : uint8_t {
  kLayer,  // (x - mean) / sqrt(variance + epsilon)
  kRms,    // x / sqrt(mean of squares + epsilon)
};

enum class ChosenActivation : uint8_t {
  kGeluErf,   // x/2 (1 + erf(x / sqrt 2))
  kGeluTanh,  // x/2 (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3)))
  kRelu,
  kSwish,  // x sigmoid(x), also called SiLU
  kTanh,
};

// What a sequence classifier reads of the last hidden states.
enum class SequencePooling : uint8_t {
  kFirst,  // the first token's
  kMean,   // the mean of all tokens
};

// The defaults are BERT's.
struct EncoderChoices {
  // Positions: a table whose row `first_position` is of a sequence's first token, or none.
  bool position_table = true;
  int64_t first_position = 0;
  // Rotary positions turn queries and keys by angles position * theta^(-2 j / head_size). 0: none.
  // `window_theta` is for layers whose attention has a window.
  double rotary_theta = 0, window_theta = 0;
  // The word embeddings' width, which a matrix projects to the hidden size. 0: the hidden size.
  int64_t embedding_size = 0;
  bool embedding_norm = true;

  // Attention. Layer i attends to the whole sequence if i % full_attention_every == 0, the others
  // to keys at most `window` tokens away, on either side.
  int64_t full_attention_every = 1;
  int64_t window = 0;
  // Buckets of distances whose learned numbers are added to the scores, the same in all layers (T5,
  // MPNet). 0: none.
  int64_t score_buckets = 0, score_distance = 0;

  // Norms. `norm_before`: before each part instead of after it, and one at the end. Then
  // `first_attention_norm` says whether layer 0 has one before its attention.
  NormKind norm = NormKind::kLayer;
  bool norm_bias = true;
  bool norm_before = false;
  bool first_attention_norm = true;

  // Feed-forward part. Gated: W_out (activation(W_gate x) * (W_up x)).
  ChosenActivation activation = ChosenActivation::kGeluErf;
  bool gated = false;

  // Which linear layers of the encoder have a bias.
  bool qkv_bias = true, attention_output_bias = true;
  bool feed_in_bias = true, feed_out_bias = true;

  // The masked-word head: dense, activation, norm, decoder. `tied`: the decoder is the matrix of
  // word embeddings.
  bool head_transform = true, head_dense_bias = true, head_norm_bias = true;
  bool tied = true, decoder_bias = true;
  ChosenActivation head_activation = ChosenActivation::kGeluErf;

  // The sequence classifier: pooling, dropout, dense, activation, norm, dropout, classifier.
  SequencePooling sequence_pooling = SequencePooling::kFirst;
  bool sequence_dropout_first = false;  // dropout before the dense layer, too
  bool sequence_dense_bias = true;
  ChosenActivation sequence_activation = ChosenActivation::kTanh;
  bool sequence_norm = false;
  // ModernBERT's heads for tokens and spans, too, have a dense layer, an activation and a norm.
  bool dense_before_labels = false;

  bool operator==(const EncoderChoices&) const = default;

  bool full_attention(int64_t layer) const { return layer % full_attention_every == 0; }
};

}  // namespace onebit
