#include "onebit/model/memory_plan.h"

namespace onebit::model {

MemoryOptions read_memory_options(JsonReader& section) {
  MemoryOptions options;
  options.gelu_checkpoint = section.boolean("gelu_checkpoint", false);
  options.normalize_invertible = section.boolean("normalize_invertible", false);
  options.full_recomputation = section.boolean("full_recomputation", false);
  require(section.boolean("attn_dropout_checkpoint", true),
          "{} is false, which would keep the masks of the attention's dropout: they are computed "
          "again from a counter here and never stored; remove it",
          section.place("attn_dropout_checkpoint"));
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
