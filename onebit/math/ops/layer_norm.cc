#include "onebit/math/ops/layer_norm.h"

#include "onebit/math/kernels/argument_check.h"
#include "onebit/math/kernels/device_switch.h"

namespace onebit::ops {

static Work work_of(const LayerNorm& a) {
  return kernels::moves(a.x, a.gamma, a.beta, a.y, a.mean, a.inverse_stddev);
}
static Work work_of(const LayerNormBackward& a) {
  return kernels::moves(a.grad_y, a.x.empty() ? a.y : a.x, a.gamma, a.inverse_stddev, a.grad_x,
                        a.grad_gamma, a.grad_beta);
}

ONEBIT_DEVICE_OP(void, layer_norm, const LayerNorm&);
ONEBIT_DEVICE_OP(void, layer_norm_backward, const LayerNormBackward&);

namespace {

// A is LayerNorm or ResidualNorm.
template <class A>
void check_norm(const kernels::ArgumentCheck& check, const A& a, int64_t rows, int64_t hidden) {
  check.view("gamma", a.gamma, DType::kF32, {hidden});
  check.optional("beta", a.beta, DType::kF32, {hidden});
  check.optional("inverse_stddev", a.inverse_stddev, DType::kF32, {rows});
  if (a.kind == NormKind::kRms) return;
  check.optional("mean", a.mean, DType::kF32, {rows});
  check.that(a.mean.empty() == a.inverse_stddev.empty(),
             "mean and inverse_stddev must be given together");
}

// A is LayerNormBackward or ResidualNormBackward, and `input` the norm's input.
template <class A>
void check_norm_backward(const kernels::ArgumentCheck& check, const A& a, const char* name,
                         const ConstView& input) {
  const DType dtype = a.grad_y.dtype();
  const Shape shape = a.grad_y.shape();
  const int64_t rows = shape[0], hidden = shape[1];
  if (!input.empty()) {
    check.view(name, input, dtype, shape);
    if (a.kind == NormKind::kLayer) check.view("mean", a.mean, DType::kF32, {rows});
  } else {
    check.view("y", a.y, dtype, shape);
    check.optional("beta", a.beta, DType::kF32, {hidden});
  }
  check.view("gamma", a.gamma, DType::kF32, {hidden});
  check.view("inverse_stddev", a.inverse_stddev, DType::kF32, {rows});
  check.view("grad_gamma", a.grad_gamma, DType::kF32, {hidden});
  check.optional("grad_beta", a.grad_beta, DType::kF32, {hidden});
}

}  // namespace

void layer_norm(Context& context, const LayerNorm& a) {
  const kernels::ArgumentCheck check(context, "layer_norm");
  check.leading("x", a.x, 2);
  check_norm(check, a, a.x.extent(0), a.x.extent(1));
  check.view("y", a.y, a.x.dtype(), a.x.shape());
  on_device::layer_norm(context, a);
}

void layer_norm_backward(Context& context, const LayerNormBackward& a) {
  const kernels::ArgumentCheck check(context, "layer_norm_backward");
  check.leading("grad_y", a.grad_y, 2);
  check_norm_backward(check, a, "x", a.x);
  check.view("grad_x", a.grad_x, a.grad_y.dtype(), a.grad_y.shape());
  on_device::layer_norm_backward(context, a);
}

static Work work_of(const ResidualNorm& a) {
  return kernels::moves(a.residual, a.x, a.sum, a.y, a.mean, a.inverse_stddev);
}
static Work work_of(const ResidualNormBackward& a) {
  return kernels::moves(a.grad_y, a.grad_y_extra, a.grad_sum_extra, a.sum.empty() ? a.y : a.sum,
                        a.inverse_stddev, a.grad_residual, a.grad_x);
}

ONEBIT_DEVICE_OP(void, residual_norm, const ResidualNorm&);
ONEBIT_DEVICE_OP(void, residual_norm_backward, const ResidualNormBackward&);

void residual_norm(Context& context, const ResidualNorm& a) {
  const kernels::ArgumentCheck check(context, "residual_norm");
  check.leading("x", a.x, 2);
  const DType dtype = a.x.dtype();
  const Shape shape = a.x.shape();
  const int64_t rows = shape[0], hidden = shape[1];
  check.view("residual", a.residual, dtype, shape);
  check.dropout(a.dropout, rows);
  check_norm(check, a, rows, hidden);
  check.optional("sum", a.sum, dtype, shape);
  check.view("y", a.y, dtype, shape);
  check.that(a.sum.empty() || a.sum.raw() != a.y.raw(), "sum and y must not be the same memory");
  on_device::residual_norm(context, a);
}

void residual_norm_backward(Context& context, const ResidualNormBackward& a) {
  const kernels::ArgumentCheck check(context, "residual_norm_backward");
  check.leading("grad_y", a.grad_y, 2);
  const DType dtype = a.grad_y.dtype();
  const Shape shape = a.grad_y.shape();
  const int64_t rows = shape[0], hidden = shape[1];
  check.optional("grad_y_extra", a.grad_y_extra, dtype, shape);
  check.optional("grad_sum_extra", a.grad_sum_extra, dtype, shape);
  check_norm_backward(check, a, "sum", a.sum);
  check.dropout(a.dropout, rows);
  check.view("grad_residual", a.grad_residual, dtype, shape);
  check.optional("grad_x", a.grad_x, dtype, shape);
  check.that(!a.grad_x.empty() || (a.dropout.probability == 0 && a.factor == 1) || rows == 0,
             "grad_x is required: with dropout or a factor it differs from grad_residual");
  check.that(a.grad_x.empty() || a.grad_x.raw() != a.grad_residual.raw(),
             "grad_x and grad_residual must not be the same memory; without dropout and factor, "
             "omit grad_x");
  check.optional("grad_bias", a.grad_bias, DType::kF32, {hidden});
  on_device::residual_norm_backward(context, a);
}

}  // namespace onebit::ops
