#include "onebit/exchange/engine/packed_matrices.h"

#include <gtest/gtest.h>

#include <cstring>
#include <memory>
#include <vector>

#include "onebit/exchange/optim/optimizer.h"
#include "onebit/math/ops/linear.h"

namespace onebit::engine {
namespace {

constexpr int64_t kRows = 5, kIn = 64;

// A square matrix, too: its copies for both directions have the same layout.
class PackedMatricesTest : public testing::TestWithParam<int64_t> {
 protected:
  PackedMatricesTest() {
    x_ = add("x", {kRows, kIn}, true);
    grad_y_ = add("grad_y", {kRows, out_}, true);
    weight_ = add("weight", {out_, kIn}, false);
    add("bias", {out_}, false);
    table_.allocate(Device{}, DType::kBF16);
    overwrite(1);
  }

  int add(const char* name, Shape shape, bool lookup) {
    return table_.add({.name = name,
                       .shape = shape,
                       .init = InitialValue::kNormal,
                       .init_stddev = 1,
                       .lookup = lookup});
  }

  void overwrite(uint64_t seed) {
    table_.initialize(seed);
    optim::refresh_compute_copy(context_, table_);
  }

  // A forward product and the gradient of its input.
  std::vector<float> products() {
    const Tensor y(Device{}, DType::kBF16, {kRows, out_});
    const Tensor grad_x(Device{}, DType::kBF16, {kRows, kIn});
    const View weight = table_.compute_value(weight_);
    ops::linear(context_,
                {.x = table_.compute_value(x_), .weight = weight, .bias = {}, .y = y.view()});
    ops::linear_backward_input(
        context_,
        {.grad_y = table_.compute_value(grad_y_), .weight = weight, .grad_x = grad_x.view()});
    std::vector<float> values;
    for (const Tensor* result : {&y, &grad_x}) {
      const Tensor wide = to_cpu_f32(result->view());
      values.insert(values.end(), wide.data<float>(), wide.data<float>() + wide.shape().elements());
    }
    return values;
  }

  const int64_t out_ = GetParam();
  Context context_ = Context::cpu(2);
  ParameterTable table_;
  int x_ = 0, grad_y_ = 0, weight_ = 0;
};

TEST_P(PackedMatricesTest, ProductsHaveTheSameBits) {
  const std::vector<float> before = products();
  overwrite(2);
  const std::vector<float> after = products();
  overwrite(1);
  PackedMatrices packed(context_, table_);
  EXPECT_EQ(products(), before);
  EXPECT_EQ(products(), before);
  overwrite(2);
  packed.changed();
  EXPECT_EQ(products(), after);
}

// Shows that products read the copies, and that changed() must be called.
TEST_P(PackedMatricesTest, CopiesLastUntilTheMatricesAreChanged) {
  if (!ops::bf16_is_native(context_)) GTEST_SKIP() << "this processor has no bf16 instructions";
  PackedMatrices packed(context_, table_);
  products();
  const View weight = table_.compute_value(weight_);
  std::memset(weight.raw(), 0, static_cast<size_t>(weight.size_bytes()));
  EXPECT_NE(products()[0], 0);
  packed.changed();
  EXPECT_EQ(products(), std::vector<float>(static_cast<size_t>(kRows * (out_ + kIn)), 0.0f));
}

TEST_P(PackedMatricesTest, WithoutThemNothingIsCopied) {
  PackedMatrices none;
  none.changed();
  products();
  overwrite(2);
  const std::vector<float> plain = products();
  none = PackedMatrices(context_, table_);
  EXPECT_EQ(products(), plain);
  none = PackedMatrices();
  overwrite(1);
  EXPECT_NE(products(), plain);
}

TEST_P(PackedMatricesTest, OfTwoTheSecondLastsLonger) {
  auto first = std::make_unique<PackedMatrices>(context_, table_);
  PackedMatrices second(context_, table_);
  const std::vector<float> before = products();
  first = nullptr;
  EXPECT_EQ(products(), before);
  overwrite(2);
  second.changed();
  const std::vector<float> after = products();
  second = PackedMatrices();
  EXPECT_EQ(products(), after);
}

TEST_P(PackedMatricesTest, CountsMatricesAlone) {
  EXPECT_EQ(PackedMatrices::bytes(table_, DType::kBF16), 2 * 2 * out_ * kIn);
}

INSTANTIATE_TEST_SUITE_P(Outputs, PackedMatricesTest, testing::Values(kIn, 80));

}  // namespace
}  // namespace onebit::engine
