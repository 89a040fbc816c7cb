#include "onebit/math/ops/linear.h"

#include "onebit/math/device/constant_weights.h"
#include "onebit/math/kernels/amx_product.h"
#include "onebit/math/kernels/argument_check.h"
#include "onebit/math/kernels/device_switch.h"
#include "onebit/math/kernels/matrix_product.h"
#include "onebit/math/ops/elementwise.h"
#include "onebit/math/ops/int8_linear.h"
#include "onebit/math/ops/reduce.h"

namespace onebit::kernels {

static Work work_of(const MatrixProduct& p) {
  Work work = moves(p.a, p.b, p.c, p.accumulate ? p.c : View());
  work.flops =
      2.0 * static_cast<double>(p.m()) * static_cast<double>(p.n()) * static_cast<double>(p.k());
  work.use = p.a_transposed ? "gradient of weight" : p.b_transposed ? "forward" : "gradient of x";
  work.in = p.b_transposed ? p.k() : p.n();
  work.out = p.a_transposed ? p.m() : p.b_transposed ? p.n() : p.k();
  return work;
}

}  // namespace onebit::kernels

namespace onebit::ops {

// Returns whether the product was computed: false, with nothing done, if the backend cannot fuse
// the epilogue. Without an epilogue, or with only a bias, it is always computed.
ONEBIT_DEVICE_OP(bool, matrix_product, const kernels::MatrixProduct&);
ONEBIT_DEVICE_OP(bool, bf16_is_native);
ONEBIT_DEVICE_OP(bool, pack_constant_weight, const PackConstantWeight&);

namespace {

bool try_make(Context& context, const kernels::MatrixProduct& product) {
  return on_device::matrix_product(context, product);
}

// For a product with an epilogue beyond a bias. The CPU fuses none.
bool try_whole(Context& context, const kernels::MatrixProduct& product) {
  return !context.device().is_cpu() && try_make(context, product);
}

// For a product without an epilogue beyond a bias.
void make(Context& context, const kernels::MatrixProduct& product) {
  ONEBIT_INVARIANT(try_make(context, product));
}

struct Sizes {
  int64_t rows, in, out;
};

// The sizes of y = x . weight^T.
Sizes forward_sizes(const kernels::ArgumentCheck& check, ConstView x, ConstView weight) {
  check.leading("x", x, 2);
  check.leading("weight", weight, 2);
  const Sizes sizes{.rows = x.extent(0), .in = x.extent(1), .out = weight.extent(0)};
  check.view("weight", weight, x.dtype(), {sizes.out, sizes.in});
  return sizes;
}

// The sizes of grad_x = grad_y . weight.
Sizes backward_sizes(const kernels::ArgumentCheck& check, ConstView grad_y, ConstView weight) {
  check.leading("grad_y", grad_y, 2);
  check.leading("weight", weight, 2);
  const Sizes sizes{.rows = grad_y.extent(0), .in = weight.extent(1), .out = grad_y.extent(1)};
  check.view("weight", weight, grad_y.dtype(), {sizes.out, sizes.in});
  return sizes;
}

// What the bias of a result of this type has to be.
DType bias_type(const Context& context, const ConstView& bias, DType type) {
  const bool is_rounded = context.device().type == DeviceType::kCuda && bias.dtype() == type;
  return is_rounded ? type : DType::kF32;
}

kernels::MatrixProduct forward_product(ConstView x, ConstView weight, ConstView bias, View y) {
  return {.a = x,
          .b = weight,
          .b_transposed = true,
          .c = y,
          .epilogue = bias.empty() ? kernels::Epilogue::kNone : kernels::Epilogue::kBias,
          .bias = bias};
}

}  // namespace

void linear(Context& context, const Linear& a) {
  const kernels::ArgumentCheck check(context, "linear");
  const auto [rows, in, out] = forward_sizes(check, a.x, a.weight);
  check.optional("bias", a.bias, bias_type(context, a.bias, a.y.dtype()), {out});
  check.view("y", a.y, a.x.dtype(), {rows, out});
  if (is_quantised(context, a.weight.raw())) {
    return int8_linear(context,
                       {.x = a.x, .weight = a.weight, .bias = a.bias, .activation = {}, .y = a.y});
  }
  make(context, forward_product(a.x, a.weight, a.bias, a.y));
}

void linear_activation(Context& context, const LinearActivation& a) {
  const kernels::ArgumentCheck check(context, "linear_activation");
  const auto [rows, in, out] = forward_sizes(check, a.x, a.weight);
  check.optional("bias", a.bias, bias_type(context, a.bias, a.y.dtype()), {out});
  check.view("pre_activation", a.pre_activation, a.x.dtype(), {rows, out});
  check.view("y", a.y, a.x.dtype(), {rows, out});
  if (is_quantised(context, a.weight.raw())) {
    return int8_linear(
        context, {.x = a.x, .weight = a.weight, .bias = a.bias, .activation = a.kind, .y = a.y});
  }
  if (a.kind == ActivationKind::kGeluTanh && !a.bias.empty()) {  // fused together with a bias
    kernels::MatrixProduct whole = forward_product(a.x, a.weight, a.bias, a.y);
    whole.epilogue = kernels::Epilogue::kBiasGeluTanh;
    whole.pre_activation = a.pre_activation;
    if (try_whole(context, whole)) return;
  }
  make(context, forward_product(a.x, a.weight, a.bias, a.pre_activation));
  activation(context, {.kind = a.kind, .x = a.pre_activation, .y = a.y});
}

void linear_backward_input(Context& context, const LinearBackwardInput& a) {
  const kernels::ArgumentCheck check(context, "linear_backward_input");
  const auto [rows, in, out] = backward_sizes(check, a.grad_y, a.weight);
  check.view("grad_x", a.grad_x, a.grad_y.dtype(), {rows, in});
  make(context, {.a = a.grad_y, .b = a.weight, .c = a.grad_x, .accumulate = a.add});
}

void linear_backward_activation(Context& context, const LinearBackwardActivation& a) {
  const kernels::ArgumentCheck check(context, "linear_backward_activation");
  const auto [rows, in, out] = backward_sizes(check, a.grad_y, a.weight);
  check.view("saved", a.saved, a.grad_y.dtype(), {rows, in});
  check.view("grad_x", a.grad_x, a.grad_y.dtype(), {rows, in});
  check.optional("grad_bias", a.grad_bias, DType::kF32, {in});
  const kernels::MatrixProduct product{.a = a.grad_y, .b = a.weight, .c = a.grad_x};
  if (a.kind == ActivationKind::kGeluTanh) {
    kernels::MatrixProduct whole = product;
    whole.epilogue = kernels::Epilogue::kGeluTanhGradient;
    whole.saved = a.saved;
    if (try_whole(context, whole)) {
      if (!a.grad_bias.empty()) column_sum(context, {.x = a.grad_x, .sum = a.grad_bias});
      return;
    }
  }
  make(context, product);
  activation_backward(context, {.kind = a.kind,
                                .grad_y = a.grad_x,
                                .saved = a.saved,
                                .grad_x = a.grad_x,
                                .grad_bias = a.grad_bias});
}

void linear_backward_weight(Context& context, const LinearBackwardWeight& a) {
  const kernels::ArgumentCheck check(context, "linear_backward_weight");
  check.leading("grad_y", a.grad_y, 2);
  check.leading("x", a.x, 2);
  const int64_t rows = a.grad_y.extent(0), out = a.grad_y.extent(1), in = a.x.extent(1);
  check.view("x", a.x, a.grad_y.dtype(), {rows, in});
  check.view("grad_weight", a.grad_weight, DType::kF32, {out, in});
  check.optional("grad_bias", a.grad_bias, DType::kF32, {out});
  if (rows == 0) {
    if (a.overwrite_weight) fill(context, a.grad_weight, 0);
    return;
  }
  const kernels::MatrixProduct product{.a = a.grad_y,
                                       .a_transposed = true,
                                       .b = a.x,
                                       .c = a.grad_weight,
                                       .accumulate = !a.overwrite_weight};
  if (!a.grad_bias.empty()) {
    kernels::MatrixProduct whole = product;
    whole.epilogue = kernels::Epilogue::kRowSums;
    whole.row_sums = a.grad_bias;
    if (try_whole(context, whole)) return;
    column_sum(context, {.x = a.grad_y, .sum = a.grad_bias});
  }
  make(context, product);
}

bool pack_constant_weight(Context& context, const PackConstantWeight& a) {
  const kernels::ArgumentCheck check(context, "pack_constant_weight");
  check.leading("weight", a.weight, 2);
  check.view("values", a.values, a.weight.dtype(), a.weight.shape());
  return on_device::pack_constant_weight(context, a);
}

bool bf16_is_native(Context& context) {
  return on_device::bf16_is_native(context);
}

bool bf16_gains_from_copies(Context& context) {
  return context.device().is_cpu() && bf16_is_native(context) && !kernels::has_amx_products();
}

}  // namespace onebit::ops
