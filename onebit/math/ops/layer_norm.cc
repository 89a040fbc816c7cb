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

void layer_norm(Context& context, const LayerNorm& a) {
  const kernels::ArgumentCheck check(context, "layer_norm");
  check.leading("x", a.x, 2);
  const int64_t rows = a.x.extent(0), hidden = a.x.extent(1);
  check.view("gamma", a.gamma, DType::kF32, {hidden});
  check.view("beta", a.beta, DType::kF32, {hidden});
  check.view("y", a.y, a.x.dtype(), a.x.shape());
  check.optional("mean", a.mean, DType::kF32, {rows});
  check.optional("inverse_stddev", a.inverse_stddev, DType::kF32, {rows});
  check.that(a.mean.empty() == a.inverse_stddev.empty(),
             "mean and inverse_stddev must be given together");
  on_device::layer_norm(context, a);
}

void layer_norm_backward(Context& context, const LayerNormBackward& a) {
  const kernels::ArgumentCheck check(context, "layer_norm_backward");
  check.leading("grad_y", a.grad_y, 2);
  const DType dtype = a.grad_y.dtype();
  const Shape shape = a.grad_y.shape();
  const int64_t rows = shape[0], hidden = shape[1];
  if (!a.x.empty()) {
    check.view("x", a.x, dtype, shape);
    check.view("mean", a.mean, DType::kF32, {rows});
  } else {
    check.view("y", a.y, dtype, shape);
    check.view("beta", a.beta, DType::kF32, {hidden});
  }
  check.view("gamma", a.gamma, DType::kF32, {hidden});
  check.view("inverse_stddev", a.inverse_stddev, DType::kF32, {rows});
  check.view("grad_x", a.grad_x, dtype, shape);
  check.view("grad_gamma", a.grad_gamma, DType::kF32, {hidden});
  check.view("grad_beta", a.grad_beta, DType::kF32, {hidden});
  on_device::layer_norm_backward(context, a);
}

}  // namespace onebit::ops
