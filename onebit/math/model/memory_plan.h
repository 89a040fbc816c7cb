// Reserves the memory of a model once and records the purpose of each byte. The same code without a
// device counts the memory of a configuration.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>

#include "onebit/ground/recipe/keys.h"
#include "onebit/math/device/device.h"
#include "onebit/math/tensor/tensor.h"

namespace onebit::model {

// Options that trade time for memory. Losses and gradients are unchanged (normalize_invertible: up
// to rounding).
struct MemoryOptions {
  // Keep only the input of the feed-forward activation and recompute its output.
  bool gelu_checkpoint = false;
  // Keep only the outputs of layer norms and recover the inputs.
  bool normalize_invertible = false;
  // Compute the bits of attention's dropout again where kernels could keep them.
  bool attention_dropout_checkpoint = false;
  // Keep only the output of each layer and rerun its forward pass.
  bool full_recomputation = false;

  bool operator==(const MemoryOptions&) const = default;
};

// Reads the keys of these options.
MemoryOptions read_memory_options(Keys& section);

enum class MemoryKind : uint8_t {
  kSaved,      // activations kept from forward to backward
  kGradients,  // gradients of activations
  kScratch,    // only used within one layer
  kHead,       // activations, gradients and logits of heads
};
inline constexpr size_t kMemoryKinds = 4;

std::string_view name_of(MemoryKind kind);

class MemoryPlan {
 public:
  // Reserves memory on `device`.
  explicit MemoryPlan(Device device) : device_(device), type_(device.type) {}
  // Only counts what a device of this type needs, and returns empty tensors.
  explicit MemoryPlan(DeviceType type) : type_(type) {}

  DeviceType type() const { return type_; }
  Tensor reserve(MemoryKind kind, DType dtype, Shape shape);
  int64_t bytes(MemoryKind kind) const { return bytes_[static_cast<size_t>(kind)]; }

 private:
  std::optional<Device> device_;
  DeviceType type_;
  std::array<int64_t, kMemoryKinds> bytes_{};
};

// The first `rows` rows of a reserved tensor. Empty if it was not reserved.
View rows_of(const Tensor& tensor, int64_t rows);
// The beginning of a reserved flat tensor as a matrix. Empty if it was not reserved.
View matrix_of(const Tensor& flat, int64_t rows, int64_t columns);

}  // namespace onebit::model
