#include <array>
#include <cmath>
#include <cstring>
#include <utility>
#include <vector>

#include "onebit/math/device/constant_weights.h"
#include "onebit/math/ops/elementwise.h"
#include "onebit/math/ops/linear.h"
#include "tests/ops/backend_test.h"

namespace onebit::ops {
namespace {

class LinearConstantWeightsTest : public BackendTest {};

// Copies of constant weights give the bits of the weights themselves, and none outlives the
// promise: the same memory then holds other weights.
TEST_P(LinearConstantWeightsTest, GiveTheSameBits) {
  constexpr std::array<std::array<int64_t, 3>, 4> kSizes = {
      {{1, 1, 1}, {33, 96, 2}, {257, 128, 200}, {40, 768, 768}}};
  for (const auto& [rows, in, out] : kSizes) {
    SCOPED_TRACE(testing::Message() << rows << " x " << in << " x " << out);
    const Tensor x = upload(random(rows, in, 1)), weight = zeros({out, in});
    const Shape shape{rows, out};
    const auto output = [&] {
      const Tensor y = zeros(shape);
      linear(context(), {.x = x.view(), .weight = weight.view(), .bias = {}, .y = y.view()});
      return to_cpu_f32(y.view());
    };
    for (const uint64_t stream : {2, 3}) {
      copy(weight.view(), upload(random(out, in, stream)).view());
      const Tensor plain = output();
      ConstantWeights promise(context(), weight.view().raw(), weight.view().size_bytes());
      const ConstantWeights moved = std::move(promise);
      for (int call = 0; call < 2; ++call) {
        const Tensor packed = output();
        if (products_keep_their_order() || !context().device().is_cpu()) {
          EXPECT_EQ(std::memcmp(packed.view().raw(), plain.view().raw(),
                                static_cast<size_t>(plain.view().size_bytes())),
                    0);
          continue;
        }
        for (int64_t i = 0; i < rows * out; ++i) {
          const double value = plain.data<float>()[i], terms = std::sqrt(static_cast<double>(in));
          ASSERT_NEAR(packed.data<float>()[i], value,
                      64 * roundoff(dtype()) * (std::abs(value) + terms))
              << "at " << i;
        }
      }
    }
  }
}

// Products of any number of rows read nothing but the packed copy, when it is said so.
TEST_P(LinearConstantWeightsTest, APackedWeightNeedsItsOwnMemoryNoMore) {
  constexpr int64_t kIn = 48, kOut = 80;
  const Tensor weight = upload(random(kOut, kIn, 2));
  const auto output = [&](int64_t rows) {
    const Tensor x = upload(random(rows, kIn, 1)), y = zeros({rows, kOut});
    linear(context(), {.x = x.view(), .weight = weight.view(), .bias = {}, .y = y.view()});
    return to_cpu_f32(y.view());
  };
  const Tensor values = upload(random(kOut, kIn, 2));
  const PackConstantWeight packing{.weight = weight.view(), .values = values.view()};
  EXPECT_FALSE(pack_constant_weight(context(), packing)) << "nobody promised anything";
  const ConstantWeights promise(context(), weight.view().raw(), weight.view().size_bytes());
  const std::vector<int64_t> sizes = {1, 2, 7, 31, 256, 300};
  std::vector<Tensor> expected;
  for (const int64_t rows : sizes) expected.push_back(output(rows));
  const Tensor kept = upload(random(kOut, kIn, 2));
  fill(context(), weight.view(), -7);
  if (!pack_constant_weight(context(), packing)) copy(weight.view(), kept.view());
  fill(context(), values.view(), -7);
  for (size_t i = 0; i < sizes.size(); ++i) {
    const Tensor y = output(sizes[i]);
    EXPECT_EQ(std::memcmp(y.view().raw(), expected[i].view().raw(),
                          static_cast<size_t>(y.view().size_bytes())),
              0)
        << sizes[i] << " rows";
  }
}

ONEBIT_ON_EVERY_BACKEND(LinearConstantWeightsTest);

}  // namespace
}  // namespace onebit::ops
