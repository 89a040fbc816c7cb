#include "tests/muon/newton_schulz.h"

#include <algorithm>
#include <cmath>

#include "onebit/math/ops/elementwise.h"
#include "onebit/math/ops/linear.h"
#include "onebit/math/ops/reduce.h"

namespace onebit::muon {

NewtonSchulz::NewtonSchulz(int64_t rows, int64_t columns)
    : wide_(columns >= rows), next_(Device{}, DType::kF32, {rows, columns}) {
  const int64_t side = std::min(rows, columns);
  gram_ = Tensor(Device{}, DType::kF32, {side, side});
  square_ = Tensor(Device{}, DType::kF32, {side, side});
}

void NewtonSchulz::run(Context& context, View matrix) {
  const double norm = std::sqrt(ops::squared_norm(context, matrix));
  if (norm == 0) return;
  const auto factor = static_cast<float>(1 / norm);
  float* const values = matrix.data<float>();
  for (int64_t i = 0; i < matrix.elements(); ++i) values[i] *= factor;
  for (int i = 0; i < kIterations; ++i) {
    iterate(context, matrix, next_.view());
    copy(matrix, next_.view());
  }
}

// With G the smaller of X X^T and X^T X, the result is P X or X P for
// P = kLinear I + kCubic G + kQuintic G G.
void NewtonSchulz::iterate(Context& context, ConstView from, View to) {
  const View gram = gram_.view(), square = square_.view();
  if (wide_) {
    ops::linear(context, {.x = from, .weight = from, .bias = {}, .y = gram});
  } else {
    ops::fill(context, gram, 0.0f);
    ops::linear_backward_weight(context,
                                {.grad_y = from, .x = from, .grad_weight = gram, .grad_bias = {}});
  }
  ops::linear(context, {.x = gram, .weight = gram, .bias = {}, .y = square});
  float* const p = square.data<float>();
  const float* const g = gram.data<float>();
  for (int64_t i = 0; i < square.elements(); ++i) p[i] = kCubic * g[i] + kQuintic * p[i];
  const int64_t side = square.extent(0);
  for (int64_t i = 0; i < side; ++i) p[i * side + i] += kLinear;
  if (wide_) {
    ops::linear_backward_input(context, {.grad_y = square, .weight = from, .grad_x = to});
  } else {
    // P is symmetric, so its transpose can be used.
    ops::linear(context, {.x = from, .weight = square, .bias = {}, .y = to});
  }
}

}  // namespace onebit::muon
