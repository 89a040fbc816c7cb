#include "onebit/math/ops/elementwise.h"

#include "onebit/math/kernels/argument_check.h"
#include "onebit/math/kernels/device_switch.h"

namespace onebit::ops {

static Work work_of(const Cast& a) {
  return kernels::moves(a.from, a.to);
}
static Work work_of(const Add& a) {
  return kernels::moves(a.x, a.y, a.y);
}

ONEBIT_DEVICE_OP(void, cast, const Cast&);
ONEBIT_DEVICE_OP(void, fill, View, float);
ONEBIT_DEVICE_OP(void, fill_zero, View, std::span<const Range>);
ONEBIT_DEVICE_OP(void, add, const Add&);

namespace {

void check_floating(const kernels::ArgumentCheck& check, std::string_view name,
                    const ConstView& view) {
  check.floating(name, view);
  check.view(name, view, view.dtype(), view.shape());
}

}  // namespace

void cast(Context& context, const Cast& a) {
  const kernels::ArgumentCheck check(context, "cast");
  check_floating(check, "from", a.from);
  check_floating(check, "to", a.to);
  check.that(a.from.elements() == a.to.elements(),
             "from and to must have the same number of elements");
  on_device::cast(context, a);
}

void fill(Context& context, View x, float value) {
  check_floating(kernels::ArgumentCheck(context, "fill"), "x", x);
  on_device::fill(context, x, value);
}

void fill_zero(Context& context, View x, std::span<const Range> ranges) {
  const kernels::ArgumentCheck check(context, "fill_zero");
  check.view("x", x, DType::kF32, x.shape());
  for (const Range& range : ranges) {
    check.that(range.begin % 16 == 0 && range.end % 16 == 0 && range.begin >= 0 &&
                   range.begin <= range.end && range.end <= x.elements(),
               "ranges must be multiples of 16 elements of x");
  }
  if (!ranges.empty()) on_device::fill_zero(context, x, ranges);
}

void add(Context& context, const Add& a) {
  const kernels::ArgumentCheck check(context, "add");
  check_floating(check, "x", a.x);
  check_floating(check, "y", a.y);
  check.that(a.x.elements() == a.y.elements(), "x and y must have the same number of elements");
  on_device::add(context, a);
}

static Work work_of(const DropoutForward& a) {
  return kernels::moves(a.x, a.y);
}

ONEBIT_DEVICE_OP(void, dropout, const DropoutForward&);

void dropout(Context& context, const DropoutForward& a) {
  const kernels::ArgumentCheck check(context, "dropout");
  check.leading("x", a.x, 2);
  check.view("y", a.y, a.x.dtype(), a.x.shape());
  check.dropout(a.dropout, a.x.extent(0));
  on_device::dropout(context, a);
}

// The mask does not depend on the values it is applied to.
void dropout_backward(Context& context, const DropoutBackward& a) {
  dropout(context, {.x = a.grad_y, .dropout = a.dropout, .y = a.grad_x});
}

}  // namespace onebit::ops
