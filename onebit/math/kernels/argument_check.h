// Checks the views given to an operation. Messages name the operation, the argument, what was
// expected and what was given.
#pragma once

#include <string_view>

#include "onebit/math/device/context.h"
#include "onebit/math/kernels/dropout.h"
#include "onebit/math/tensor/view.h"

namespace onebit::kernels {

class ArgumentCheck {
 public:
  ArgumentCheck(const Context& context, std::string_view operation)
      : device_(context.device()), operation_(operation) {}

  // Type, shape and device must match. A view without elements may be null.
  void view(std::string_view name, const ConstView& view, DType dtype, const Shape& shape) const;
  // The same as view(), but the view may be empty.
  void optional(std::string_view name, const ConstView& view, DType dtype,
                const Shape& shape) const;
  // f32, bf16 or f16, with this many axes: the argument that determines type and shape of others.
  void leading(std::string_view name, const ConstView& view, int rank) const;
  // f32, bf16 or f16.
  void floating(std::string_view name, const ConstView& view) const;
  void dropout(const Dropout& dropout, int64_t rows) const;
  void that(bool condition, std::string_view message) const;

 private:
  Device device_;
  std::string_view operation_;
};

}  // namespace onebit::kernels
