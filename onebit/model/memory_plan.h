// Reserves the memory of a model once and records what each byte is for. The same code, run without
// a device, counts how much a configuration would take.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>

#include "onebit/base/keys.h"
#include "onebit/tensor/tensor.h"

namespace onebit::model {

// Memory against time; losses and gradients stay what they are (normalize_invertible: up to
// rounding).
struct MemoryOptions {
  // Keep only the input of the feed-forward activation, and apply the activation again.
  bool gelu_checkpoint = false;
  // Keep only the outputs of layer norms, and recover their inputs from them.
  bool normalize_invertible = false;
  // Keep only the output of each layer, and run its forward pass again.
  bool full_recomputation = false;

  bool operator==(const MemoryOptions&) const = default;
};

// Their keys of the section `model`, and DeepSpeed's attn_dropout_checkpoint, which is always so.
MemoryOptions read_memory_options(Keys& section);

enum class MemoryKind : uint8_t {
  kSaved,      // activations kept from forward to backward
  kGradients,  // gradients of activations
  kScratch,    // used and left inside one layer
  kHead,       // heads: their activations, gradients and logits
};
inline constexpr size_t kMemoryKinds = 4;

std::string_view name_of(MemoryKind kind);

class MemoryPlan {
 public:
  // Reserves memory on `device`; without a device it only counts, and tensors are empty.
  explicit MemoryPlan(std::optional<Device> device) : device_(device) {}

  Tensor reserve(MemoryKind kind, DType dtype, Shape shape);
  int64_t bytes(MemoryKind kind) const { return bytes_[static_cast<size_t>(kind)]; }

 private:
  std::optional<Device> device_;
  std::array<int64_t, kMemoryKinds> bytes_{};
};

// The first `rows` rows of a reserved tensor, empty where none was reserved.
View rows_of(const Tensor& tensor, int64_t rows);
// The beginning of a reserved flat tensor as a matrix, empty where none was reserved.
View matrix_of(const Tensor& flat, int64_t rows, int64_t columns);

}  // namespace onebit::model
