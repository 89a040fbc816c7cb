#include "onebit/math/model/memory_plan.h"

namespace onebit::model {

MemoryOptions read_memory_options(Keys& section) {
  MemoryOptions options;
  section.boolean("gelu_checkpoint", options.gelu_checkpoint,
                  "keep only the input of the feed-forward activation, and recompute its output");
  section.boolean("normalize_invertible", options.normalize_invertible,
                  "recover the inputs of layer norms from their outputs, up to rounding");
  section.boolean("full_recomputation", options.full_recomputation,
                  "keep only the output of each layer, and rerun its forward pass");
  section.boolean("attn_dropout_checkpoint", options.attention_dropout_checkpoint,
                  "compute the bits of attention's dropout again, which a GPU keeps otherwise");
  return options;
}

std::string_view name_of(MemoryKind kind) {
  switch (kind) {
    case MemoryKind::kSaved:
      return "saved activations";
    case MemoryKind::kGradients:
      return "activation gradients";
    case MemoryKind::kScratch:
      return "scratch";
    case MemoryKind::kHead:
      return "heads and logits";
  }
  return "";
}

Tensor MemoryPlan::reserve(MemoryKind kind, DType dtype, Shape shape) {
  bytes_[static_cast<size_t>(kind)] += shape.elements() * size_bytes_of(dtype);
  return device_ ? Tensor(*device_, dtype, shape) : Tensor();
}

View rows_of(const Tensor& tensor, int64_t rows) {
  return tensor.empty() ? View() : tensor.first_rows(rows);
}

View matrix_of(const Tensor& flat, int64_t rows, int64_t columns) {
  return flat.empty() ? View() : flat.first_rows(rows * columns).reshaped({rows, columns});
}

}  // namespace onebit::model
