#include "onebit/ops/cuda_ops.h"
#include "onebit/ops/matmul_cuda.h"

namespace onebit::ops::cuda {

void linear(Context& context, const Linear& a) {
  matmul(context, {.m = a.x.extent(0),
                   .n = a.weight.extent(0),
                   .k = a.x.extent(1),
                   .rows = Matmul::Rows::kM,
                   .operands = a.x.dtype(),
                   .a = a.x.raw(),
                   .a_transposed = false,
                   .b = a.weight.raw(),
                   .b_transposed = true,
                   .bias = a.bias.empty() ? nullptr : a.bias.data<float>(),
                   .result = a.y.dtype(),
                   .c = a.y.raw(),
                   .accumulate = false});
}

void linear_backward_input(Context& context, const LinearBackwardInput& a) {
  matmul(context, {.m = a.grad_y.extent(0),
                   .n = a.weight.extent(1),
                   .k = a.weight.extent(0),
                   .rows = Matmul::Rows::kM,
                   .operands = a.grad_y.dtype(),
                   .a = a.grad_y.raw(),
                   .a_transposed = false,
                   .b = a.weight.raw(),
                   .b_transposed = false,
                   .bias = nullptr,
                   .result = a.grad_x.dtype(),
                   .c = a.grad_x.raw(),
                   .accumulate = a.add});
}

void linear_backward_weight(Context& context, const LinearBackwardWeight& a) {
  if (a.x.extent(0) == 0) return;
  matmul(context, {.m = a.grad_weight.extent(0),
                   .n = a.grad_weight.extent(1),
                   .k = a.x.extent(0),
                   .rows = Matmul::Rows::kK,
                   .operands = a.x.dtype(),
                   .a = a.grad_y.raw(),
                   .a_transposed = true,
                   .b = a.x.raw(),
                   .b_transposed = false,
                   .bias = nullptr,
                   .result = DType::kF32,
                   .c = a.grad_weight.raw(),
                   .accumulate = true});
  if (!a.grad_bias.empty()) column_sum(context, {.x = a.grad_y, .sum = a.grad_bias});
}

// Every device the machine code is for multiplies bf16 itself.
bool bf16_is_native(Context&) {
  return true;
}

}  // namespace onebit::ops::cuda
