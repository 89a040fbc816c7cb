#include "onebit/math/kernels/argument_check.h"

#include "onebit/ground/base/error.h"

namespace onebit::kernels {

void ArgumentCheck::view(std::string_view name, const ConstView& view, DType dtype,
                         const Shape& shape) const {
  require(view.dtype() == dtype, "{}: {} must be {}, but is {}", operation_, name, name_of(dtype),
          name_of(view.dtype()));
  require(view.shape() == shape, "{}: {} must have shape {}, but has {}", operation_, name,
          to_string(shape), to_string(view.shape()));
  require(view.elements() == 0 || !view.empty(), "{}: {} has no memory", operation_, name);
  require(view.elements() == 0 || view.device() == device_,
          "{}: {} is on device {}:{}, but the context is on {}:{}; copy it there first", operation_,
          name, name_of(view.device().type), view.device().index, name_of(device_.type),
          device_.index);
}

void ArgumentCheck::optional(std::string_view name, const ConstView& optional_view, DType dtype,
                             const Shape& shape) const {
  if (!optional_view.empty()) view(name, optional_view, dtype, shape);
}

void ArgumentCheck::leading(std::string_view name, const ConstView& leading_view, int rank) const {
  floating(name, leading_view);
  require(leading_view.shape().rank() == rank, "{}: {} must have {} axes, but its shape is {}",
          operation_, name, rank, to_string(leading_view.shape()));
  view(name, leading_view, leading_view.dtype(), leading_view.shape());
}

void ArgumentCheck::floating(std::string_view name, const ConstView& view) const {
  const DType dtype = view.dtype();
  require(dtype == DType::kF32 || dtype == DType::kBF16 || dtype == DType::kF16,
          "{}: {} must be f32, bf16 or f16, but is {}", operation_, name, name_of(dtype));
}

void ArgumentCheck::dropout(const Dropout& dropout, int64_t rows) const {
  require(dropout.probability >= 0 && dropout.probability < 1,
          "{}: the dropout probability must be in [0, 1), but is {}", operation_,
          dropout.probability);
  if (dropout.probability > 0) view("dropout.row_keys", dropout.row_keys, DType::kU64, {rows});
}

void ArgumentCheck::that(bool condition, std::string_view message) const {
  require(condition, "{}: {}", operation_, message);
}

}  // namespace onebit::kernels
