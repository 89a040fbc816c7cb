#include "onebit/math/ops/rows.h"

#include "tests/ops/backend_test.h"
#include "tests/reference/finite_difference.h"
#include "tests/reference/sequence_mean.h"

namespace onebit::ops {
namespace {

using reference::Matrix;

class SequenceMeanTest : public BackendTest {
 protected:
  void compare(const std::vector<int32_t>& starts, int64_t columns) {
    const int64_t rows = starts.back(), sequences = static_cast<int64_t>(starts.size()) - 1;
    const Tensor device_starts = upload_values(starts, {sequences + 1});
    const SequenceStarts given{device_starts.view(), starts};
    Matrix x = random(rows, columns, 1);
    const Matrix grad_y = random_f32(sequences, columns, 2);
    const Tensor on_x = upload(x), y = zeros_f32({sequences, columns});
    sequence_mean(context(), {.x = on_x.view(), .sequence_starts = given, .y = y.view()});
    int32_t longest = 0;
    for (size_t s = 0; s + 1 < starts.size(); ++s) {
      longest = std::max(longest, starts[s + 1] - starts[s]);
    }
    // A rounding a row of values below 2, one of the reciprocal and one of the product.
    const double sum_error = (longest + 2) * 2 * 0x1p-24;
    expect_near(y, reference::sequence_mean(x, starts), 0, sum_error, "mean");

    const Tensor on_grad_y = upload(grad_y, DType::kF32, {sequences, columns});
    const Tensor grad_x = zeros({rows, columns});
    sequence_mean_backward(
        context(), {.grad_y = on_grad_y.view(), .sequence_starts = given, .grad_x = grad_x.view()});
    const Matrix wanted = reference::finite_difference(
        x, [&] { return reference::inner(reference::sequence_mean(x, starts), grad_y); });
    // The differences of sums of at most rows * columns numbers below 4 by steps of 1e-5, and half
    // the last place of f16's smallest numbers.
    const double difference_error =
        static_cast<double>(rows * columns) * 4 * 0x1p-52 / 1e-5 + 0x1p-25;
    expect_near(grad_x, wanted, 2 * epsilon(), difference_error, "gradient");
  }
};

TEST_P(SequenceMeanTest, ForwardAndBackward) {
  compare({0, 1}, 1);
  compare({0, 3, 4, 11}, 21);
  compare({0, 40, 41, 60}, 64);
  compare({0, 2, 5}, 1100);  // more columns than a block processes at once
}

TEST_P(SequenceMeanTest, NoSequenceIsNothing) {
  const std::vector<int32_t> starts = {0};
  const Tensor device_starts = upload_values(starts, {1});
  const Tensor x = zeros({0, 8}), y = zeros_f32({0, 8});
  EXPECT_NO_THROW(sequence_mean(
      context(),
      {.x = x.view(), .sequence_starts = {device_starts.view(), starts}, .y = y.view()}));
}

ONEBIT_ON_EVERY_BACKEND(SequenceMeanTest);

TEST(SequenceMeanErrors, StartsThatDoNotCoverTheRows) {
  Context context = Context::cpu(1);
  const Tensor x = Tensor::zeros({}, DType::kF32, {4, 2}),
               y = Tensor::zeros({}, DType::kF32, {2, 2});
  const auto run = [&](const std::vector<int32_t>& starts) {
    const SequenceStarts given{ConstView::of(starts.data(), {static_cast<int64_t>(starts.size())}),
                               starts};
    sequence_mean(context, {.x = x.view(), .sequence_starts = given, .y = y.view()});
  };
  EXPECT_NO_THROW(run({0, 1, 4}));
  EXPECT_THROW(run({0, 1, 3}), Error);
  EXPECT_THROW(run({1, 2, 4}), Error);
  EXPECT_THROW(run({0, 4, 4}), Error);
  EXPECT_THROW(run({0, 4}), Error);
}

TEST(SequenceMeanErrors, NanIsNotHidden) {
  Context context = Context::cpu(1);
  const float x[] = {1, std::nanf(""), 3, 4};
  float y[2];
  const int32_t starts[] = {0, 2, 4};
  sequence_mean(context, {.x = ConstView::of(x, {4, 1}),
                          .sequence_starts = {ConstView::of(starts, {3}), starts},
                          .y = View::of(y, {2, 1})});
  EXPECT_TRUE(std::isnan(y[0]));
  EXPECT_FLOAT_EQ(y[1], 3.5f);
}

}  // namespace
}  // namespace onebit::ops
