#include "onebit/math/ops/losses.h"

#include "tests/ops/backend_test.h"
#include "tests/reference/cross_entropy.h"

namespace onebit::ops {
namespace {

using reference::Matrix;

class SpanCrossEntropyTest : public BackendTest {};

TEST_P(SpanCrossEntropyTest, LossAndGradient) {
  const std::vector<int32_t> starts = {0, 1, 8, 41}, targets = {0, 6, 20, -1, 3, 0};
  const int64_t rows = 41, columns = 2, batch = 3;
  const Matrix logits = random(rows, columns, 1, 3);
  Matrix losses(columns, batch), gradient(rows, columns);
  for (int64_t column = 0; column < columns; ++column) {
    for (size_t s = 0; s < 3; ++s) {
      const int64_t first = starts[s], length = starts[s + 1] - starts[s];
      Matrix segment(1, length);
      for (int64_t i = 0; i < length; ++i) segment(0, i) = logits(first + i, column);
      const int32_t target = targets[size_t(column * batch) + s];
      const auto wanted = reference::cross_entropy(segment, length, {target});
      losses(column, int64_t(s)) = wanted.losses[0];
      for (int64_t i = 0; i < length; ++i) gradient(first + i, column) = 2 * wanted.gradient(0, i);
    }
  }
  const Tensor on_logits = upload(logits), on_starts = upload_values(starts, {4});
  const Tensor on_targets = upload_values(targets, {columns, batch});
  const Tensor on_losses = zeros_f32({columns, batch});
  span_cross_entropy(context(), {.logits = on_logits.view(),
                                 .sequence_starts = {on_starts.view(), starts},
                                 .targets = on_targets.view(),
                                 .write_gradient = true,
                                 .gradient_scale = 2,
                                 .losses = on_losses.view()});
  expect_near(on_losses, losses, 0x1p-23, 64 * 0x1p-24, "losses");
  // f16 gradients below 2^-14 are subnormal: an absolute half unit of 2^-25.
  expect_near(on_logits, gradient, epsilon(), 64 * 0x1p-24, "gradient");
}

ONEBIT_ON_EVERY_BACKEND(SpanCrossEntropyTest);

}  // namespace
}  // namespace onebit::ops
