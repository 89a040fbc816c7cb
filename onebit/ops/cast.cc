#include "onebit/ops/cast.h"

#include "onebit/ops/argument_check.h"
#include "onebit/ops/dispatch.h"

namespace onebit::ops {
namespace {

void check_floating(const ArgumentCheck& check, std::string_view name, const ConstView& view) {
  check.floating(name, view);
  check.view(name, view, view.dtype(), view.shape());
}

}  // namespace

void cast(Context& context, const Cast& a) {
  const ArgumentCheck check(context, "cast");
  check_floating(check, "from", a.from);
  check_floating(check, "to", a.to);
  check.that(a.from.elements() == a.to.elements(),
             "from and to must have equal numbers of elements");
  run_on_device(context, &cpu::cast, &cuda::cast, a);
}

void fill(Context& context, View x, float value) {
  check_floating(ArgumentCheck(context, "fill"), "x", x);
  run_on_device(context, &cpu::fill, &cuda::fill, x, value);
}

void scale(Context& context, View x, float factor) {
  check_floating(ArgumentCheck(context, "scale"), "x", x);
  run_on_device(context, &cpu::scale, &cuda::scale, x, factor);
}

void add(Context& context, const Add& a) {
  const ArgumentCheck check(context, "add");
  check_floating(check, "x", a.x);
  check_floating(check, "y", a.y);
  check.that(a.x.elements() == a.y.elements(), "x and y must have equal numbers of elements");
  run_on_device(context, &cpu::add, &cuda::add, a);
}

}  // namespace onebit::ops
