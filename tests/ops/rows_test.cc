#include "onebit/math/ops/rows.h"

#include "tests/ops/backend_test.h"

namespace onebit::ops {
namespace {

using reference::Matrix;

class RowsTest : public BackendTest {};

TEST_P(RowsTest, GatherAndScatterRows) {
  const std::vector<int32_t> indices = {4, 0, 7};
  const Matrix x = random(9, 21, 1), base = random(9, 21, 2);
  const Tensor on_x = upload(x), on_indices = upload_values(indices, {3}), picked = zeros({3, 21});
  gather_rows(context(), {.x = on_x.view(), .indices = on_indices.view(), .y = picked.view()});
  Matrix wanted(3, 21), scattered = base;
  for (int64_t i = 0; i < 3; ++i) {
    for (int64_t j = 0; j < 21; ++j) {
      wanted(i, j) = x(indices[size_t(i)], j);
      scattered(indices[size_t(i)], j) += wanted(i, j);
    }
  }
  expect_near(picked, wanted, 0, 0, "gather");
  const Tensor target = upload(base);
  scatter_add_rows(context(),
                   {.x = picked.view(), .indices = on_indices.view(), .y = target.view()});
  expect_near(target, scattered, epsilon(), 0x1p-22, "scatter");
}

ONEBIT_ON_EVERY_BACKEND(RowsTest);

TEST(RowErrors, OutsideAndTwice) {
  Context context = Context::cpu(1);
  const Tensor x = Tensor::zeros({}, DType::kF32, {3, 2}),
               y = Tensor::zeros({}, DType::kF32, {3, 2});
  const int32_t outside[] = {0, 1, 3}, twice[] = {0, 2, 2};
  EXPECT_THROW(
      gather_rows(context, {.x = x.view(), .indices = ConstView::of(outside, {3}), .y = y.view()}),
      Error);
  EXPECT_THROW(scatter_add_rows(
                   context, {.x = x.view(), .indices = ConstView::of(outside, {3}), .y = y.view()}),
               Error);
  EXPECT_THROW(scatter_add_rows(
                   context, {.x = x.view(), .indices = ConstView::of(twice, {3}), .y = y.view()}),
               Error);
}

}  // namespace
}  // namespace onebit::ops
