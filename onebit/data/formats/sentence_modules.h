// The modules of sentence-transformers that have a config of their own: Pooling, which makes one
// vector of a text's token vectors, and Dense, a layer after it.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "onebit/ground/base/file.h"

namespace onebit::formats {

// In the order in which several are put after one another.
enum class SentencePooling {
  kFirst,           // the first token, [CLS]
  kMax,             // of each number the largest
  kMean,            // the sum over all tokens, divided by their number
  kMeanSqrtLength,  // divided by the square root of their number
  kWeightedMean,    // the mean with the weights 1, 2, 3 ... by place
  kLast,            // the last token
};

// "cls", "max", "mean", "mean_sqrt_len_tokens", "weightedmean", "lasttoken".
const char* word_of(SentencePooling pooling);
// Joined by "+".
std::string words_of(const std::vector<SentencePooling>& modes);
// The reverse of words_of(). Error: another word, with the known ones.
std::vector<SentencePooling> pooling_modes(std::string_view words);

struct PoolingModule {
  // Their vectors are put after one another.
  std::vector<SentencePooling> modes;
  bool pools_prompt = true;  // "include_prompt"

  bool operator==(const PoolingModule&) const = default;
};

// Errors: no mode, an unknown one, an unknown member.
PoolingModule read_pooling(const Path& file);
// `hidden` is the length of a token's vector.
void write_pooling(const Path& file, const PoolingModule& module, int64_t hidden);

// Dense has its config.json, and its values in model.safetensors or pytorch_model.bin.

// The classes of torch.nn, without parameters.
enum class DenseActivation {
  kIdentity,
  kTanh,
  kRelu,
  kRelu6,
  kLeakyRelu,
  kElu,
  kGelu,  // with erf
  kSigmoid,
  kSilu,
  kMish,
  kSoftplus,
  kSoftsign,
};

// "Identity", "Tanh" ...
const char* name_of(DenseActivation activation);

// activation(x . weight^T + bias), plus x or x . residual^T where `has_residual`.
struct DenseModule {
  int64_t inputs = 0, outputs = 0;
  DenseActivation activation = DenseActivation::kTanh;
  bool has_residual = false;
  std::vector<float> weight;    // [outputs, inputs]
  std::vector<float> bias;      // [outputs], or empty
  std::vector<float> residual;  // [outputs, inputs], or empty if x itself is added

  bool operator==(const DenseModule&) const = default;
};

// Errors: a file that is missing or damaged, an activation or a member that is not known, a layer
// that reads or writes something else than the text's vector, tensors of other names or shapes.
DenseModule read_dense(const Path& folder);
// Writes into an existing folder.
void write_dense(const Path& folder, const DenseModule& module);

}  // namespace onebit::formats
