#include "onebit/math/ops/int8_linear.h"

#include "onebit/math/device/constant_weights.h"
#include "onebit/math/kernels/argument_check.h"
#include "onebit/math/kernels/device_switch.h"

namespace onebit::ops {

static Work work_of(const Int8Linear& a) {
  Work work = kernels::moves(a.x, a.y);
  const int64_t in = a.x.extent(1), out = a.y.extent(1);
  work.bytes += static_cast<double>(in) * static_cast<double>(out);
  work.flops = 2.0 * static_cast<double>(a.x.elements()) * static_cast<double>(out);
  work.use = "forward";
  work.in = in;
  work.out = out;
  return work;
}

ONEBIT_DEVICE_OP(std::string, why_no_int8);
ONEBIT_DEVICE_OP(bool, quantise_constant_weight, const PackConstantWeight&);
ONEBIT_DEVICE_OP(void, int8_linear, const Int8Linear&);

std::string why_no_int8(Context& context) {
  return on_device::why_no_int8(context);
}

bool quantise_constant_weight(Context& context, const PackConstantWeight& a) {
  const kernels::ArgumentCheck check(context, "quantise_constant_weight");
  check.leading("weight", a.weight, 2);
  check.that(a.weight.dtype() == DType::kF32, "weight is not f32");
  check.view("values", a.values, DType::kF32, a.weight.shape());
  return on_device::quantise_constant_weight(context, a);
}

void int8_linear(Context& context, const Int8Linear& a) {
  const kernels::ArgumentCheck check(context, "int8_linear");
  check.leading("x", a.x, 2);
  check.leading("weight", a.weight, 2);
  const int64_t rows = a.x.extent(0), in = a.x.extent(1), out = a.weight.extent(0);
  check.view("x", a.x, DType::kF32, {rows, in});
  check.view("weight", a.weight, DType::kF32, {out, in});
  check.that(is_quantised(context, a.weight.raw()), "weight is not quantised");
  check.optional("bias", a.bias, DType::kF32, {out});
  check.view("y", a.y, DType::kF32, {rows, out});
  on_device::int8_linear(context, a);
}

}  // namespace onebit::ops
