// The Dense module of sentence-transformers, a layer after the pooling: its config.json, and its
// values in model.safetensors or pytorch_model.bin.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "onebit/ground/base/file.h"

namespace onebit::formats {

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
