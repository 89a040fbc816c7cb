#include "onebit/math/ops/elementwise.h"

#include "tests/ops/backend_test.h"

namespace onebit::ops {
namespace {

using reference::Matrix;

class DropoutTest : public BackendTest {};

TEST_P(DropoutTest, FollowsTheRule) {
  for (const double probability : {0.0, 0.1, 0.5, 0.9}) {
    for (const int64_t columns : {1, 7, 8, 63, 200, 513}) {
      const int64_t rows = 19;
      const auto drop = rule(probability, rows);
      const Matrix x = random(rows, columns, 1);
      const Tensor on_x = upload(x), y = zeros({rows, columns});
      ops::dropout(context(), {.x = on_x.view(), .dropout = dropout(drop), .y = y.view()});
      expect_near(y, drop.apply(x), 2 * epsilon(), 0, "y");
      dropout_backward(context(),
                       {.grad_y = on_x.view(), .dropout = dropout(drop), .grad_x = on_x.view()});
      EXPECT_EQ(bytes(on_x), bytes(y)) << "the backward mask is the forward mask, in place too";
    }
  }
}

// A fixed mask, 8 rows of 32 columns, a bit a column (1 = kept): what every device must draw.
TEST_P(DropoutTest, GoldenMask) {
  constexpr uint32_t kGolden[8] = {0xFDFFEFEFu, 0xF7FF7FFDu, 0x7F9EFFFBu, 0xF7BBFEFFu,
                                   0xFEADBFEFu, 0xBFFD5FF7u, 0xFFFEFFFFu, 0xEFFFDFEDu};
  kernels::Dropout drop{.probability = 0.1f, .seed = 42, .site = 3, .row_keys = {}};
  std::vector<uint64_t> keys;
  for (uint64_t row = 0; row < 8; ++row) keys.push_back(row << 32 | (1000 + row));
  const Tensor row_keys = upload_values(keys, {8}), x = zeros({8, 32}), y = zeros({8, 32});
  drop.row_keys = row_keys.view();
  fill(context(), x.view(), 1.0f);
  ops::dropout(context(), {.x = x.view(), .dropout = drop, .y = y.view()});
  const Tensor values = to_cpu_f32(y.view());
  for (int64_t row = 0; row < 8; ++row) {
    uint32_t mask = 0;
    for (int64_t column = 0; column < 32; ++column) {
      if (values.data<float>()[row * 32 + column] != 0) mask |= 1u << column;
    }
    EXPECT_EQ(mask, kGolden[row]) << std::hex << "row " << row << " drew 0x" << mask;
  }
}

TEST(Dropout, RefusesImpossibleProbabilities) {
  Context context = Context::cpu(1);
  const Tensor x = Tensor::zeros({}, DType::kF32, {2, 3});
  for (const float probability : {-0.1f, 1.0f, std::nanf("")}) {
    const kernels::Dropout drop{.probability = probability, .seed = 0, .site = 0, .row_keys = {}};
    EXPECT_THROW(ops::dropout(context, {.x = x.view(), .dropout = drop, .y = x.view()}), Error);
  }
}

ONEBIT_ON_EVERY_BACKEND(DropoutTest);

}  // namespace
}  // namespace onebit::ops
