#include "tests/muon/whitening.h"

#include <cmath>

#include "onebit/math/ops/elementwise.h"
#include "onebit/math/ops/linear.h"
#include "onebit/math/ops/reduce.h"

namespace onebit::muon {
namespace {

constexpr float kMemory = 0.99f;
// Added to a mean of mean diagonal 1, so that its inverse exists.
constexpr float kDamping = 1e-3f;
// Each iteration multiplies the smallest eigenvalues by 9 / 4: 10^5 takes 14 iterations, and a few
// more for precision.
constexpr int kRootIterations = 20;

Tensor square_matrix(int64_t side) {
  return Tensor::zeros(Device{}, DType::kF32, {side, side});
}

void add_to_diagonal(View matrix, float value) {
  const int64_t side = matrix.extent(0);
  for (int64_t i = 0; i < side; ++i) matrix.data<float>()[i * side + i] += value;
}

void scale(View values, double factor) {
  for (int64_t i = 0; i < values.elements(); ++i) {
    values.data<float>()[i] *= static_cast<float>(factor);
  }
}

// a b
void product(Context& context, ConstView a, ConstView b, View result) {
  ops::linear_backward_input(context, {.grad_y = a, .weight = b, .grad_x = result});
}

void follow(View mean, ConstView now) {
  for (int64_t i = 0; i < mean.elements(); ++i) {
    float& element = mean.data<float>()[i];
    element = kMemory * element + (1 - kMemory) * now.data<float>()[i];
  }
}

}  // namespace

// Y T and T Z with T = (3 - Z Y) / 2, from Y = M, Z = 1.
void square_roots(Context& context, ConstView matrix, View root, View inverse) {
  const Tensor t = square_matrix(matrix.extent(0)), next = square_matrix(matrix.extent(0));
  const double norm = std::sqrt(ops::squared_norm(context, matrix));
  copy(root, matrix);
  scale(root, 1 / norm);
  ops::fill(context, inverse, 0.0f);
  add_to_diagonal(inverse, 1);
  for (int i = 0; i < kRootIterations; ++i) {
    product(context, inverse, root, t.view());
    scale(t.view(), -0.5);
    add_to_diagonal(t.view(), 1.5f);
    product(context, root, t.view(), next.view());
    copy(root, next.view());
    product(context, t.view(), inverse, next.view());
    copy(inverse, next.view());
  }
  scale(root, std::sqrt(norm));
  scale(inverse, 1 / std::sqrt(norm));
}

Whitening::Whitening(int64_t rows, int64_t columns)
    : left_(make_side(rows)),
      right_(make_side(columns)),
      scratch_(Device{}, DType::kF32, {rows, columns}) {}

Whitening::Side Whitening::make_side(int64_t size) {
  Side side{
      .mean = square_matrix(size), .root = square_matrix(size), .inverse = square_matrix(size)};
  add_to_diagonal(side.root.view(), 1);
  add_to_diagonal(side.inverse.view(), 1);
  return side;
}

void Whitening::observe(Context& context, ConstView gradient) {
  const Tensor left = square_matrix(gradient.extent(0));
  ops::linear(context, {.x = gradient, .weight = gradient, .bias = {}, .y = left.view()});
  follow(left_.mean.view(), left.view());
  const Tensor right = square_matrix(gradient.extent(1));
  ops::linear_backward_weight(
      context, {.grad_y = gradient, .x = gradient, .grad_weight = right.view(), .grad_bias = {}});
  follow(right_.mean.view(), right.view());
}

void Whitening::refresh(Context& context) {
  for (const Side* side : {&left_, &right_}) {
    const int64_t size = side->mean.shape()[0];
    double trace = 0;
    for (int64_t i = 0; i < size; ++i) trace += side->mean.data<float>()[i * (size + 1)];
    if (trace == 0) continue;
    const Tensor mean = square_matrix(size);
    copy(mean.view(), side->mean.view());
    scale(mean.view(), static_cast<double>(size) / trace);
    add_to_diagonal(mean.view(), kDamping);
    square_roots(context, mean.view(), side->root.view(), side->inverse.view());
  }
}

void Whitening::apply(Context& context, View gradient) const {
  multiply(context, gradient, left_.inverse, right_.inverse);
}

void Whitening::take_back(Context& context, View white) const {
  multiply(context, white, left_.root, right_.root);
}

void Whitening::multiply(Context& context, View matrix, const Tensor& left,
                         const Tensor& right) const {
  product(context, left.view(), matrix, scratch_.view());
  product(context, scratch_.view(), right.view(), matrix);
}

}  // namespace onebit::muon
