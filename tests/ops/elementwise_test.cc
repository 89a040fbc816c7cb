#include "onebit/math/ops/elementwise.h"

#include <bit>

#include "tests/ops/backend_test.h"

namespace onebit::ops {
namespace {

using reference::Matrix;

class ElementwiseTest : public BackendTest {};

// Every 16-bit pattern, the neighbours of every rounding tie, and the special values.
TEST_P(ElementwiseTest, CastsRoundToNearestEven) {
  std::vector<float> values;
  for (uint32_t high = 0; high < 0x10000; high += 3) {
    for (const uint32_t low : {0u, 0x7FFFu, 0x8000u, 0x8001u, 0x0FFFu, 0x1000u, 0x1001u, 0xF000u}) {
      values.push_back(std::bit_cast<float>(high << 16 | low));
    }
  }
  const int64_t count = static_cast<int64_t>(values.size());
  const Tensor from = upload_values(values, {count}), to = zeros({count}),
               back = zeros_f32({count});
  cast(context(), {.from = from.view(), .to = to.view()});
  cast(context(), {.from = to.view(), .to = back.view()});
  for (int64_t i = 0; i < count; ++i) {
    const float value = values[size_t(i)];
    const float wanted = dtype() == DType::kF32    ? value
                         : dtype() == DType::kBF16 ? static_cast<float>(bf16(value))
                                                   : static_cast<float>(f16(value));
    const float got = to_cpu_f32(back.view().rows(i, i + 1)).data<float>()[0];
    if (std::isnan(wanted)) {
      ASSERT_TRUE(std::isnan(got)) << i;
    } else {
      ASSERT_EQ(std::bit_cast<uint32_t>(got), std::bit_cast<uint32_t>(wanted)) << value;
    }
  }
}

TEST_P(ElementwiseTest, FillAndAdd) {
  const int64_t count = 53;
  const Matrix x = random(1, count, 1), y = random(1, count, 2);
  const Tensor on_x = upload(x), on_y = upload(y), filled = zeros({count});
  fill(context(), filled.view(), 1.5f);
  expect_near(
      filled,
      [&] {
        Matrix m(1, count);
        for (double& v : m.data) v = 1.5;
        return m;
      }(),
      0, 0, "fill");
  add(context(), {.x = on_x.view(), .y = on_y.view()});
  expect_near(on_y, sum(x, y), epsilon(), 0x1p-22, "add");
}

// More ranges than one launch handles, one of them too long to share a launch.
TEST_P(ElementwiseTest, FillsRangesWithZero) {
  constexpr int64_t kRanges = 131, kLong = (1 << 20) + 16, kCount = kRanges * 48 + kLong;
  const Tensor x = zeros_f32({kCount});
  fill(context(), x.view(), 3);
  std::vector<Range> ranges;
  std::vector<bool> cleared(kCount);
  const auto add_range = [&](int64_t begin, int64_t end) {
    ranges.push_back({begin, end});
    std::fill(cleared.begin() + begin, cleared.begin() + end, true);
  };
  for (int64_t i = 0; i < kRanges; ++i) add_range(i * 48, i * 48 + 16 * (1 + i % 2));
  add_range(kRanges * 48, kCount - 16);
  fill_zero(context(), x.view(), ranges);
  const Tensor got = to_cpu_f32(x.view());
  for (int64_t i = 0; i < kCount; ++i) {
    ASSERT_EQ(got.data<float>()[i], cleared[static_cast<size_t>(i)] ? 0 : 3) << i;
  }
  fill_zero(context(), x.view(), {});
  EXPECT_THROW(fill_zero(context(), x.view(), std::vector<Range>{{0, 8}}), std::exception);
  EXPECT_THROW(fill_zero(context(), x.view(), std::vector<Range>{{0, kCount + 16}}),
               std::exception);
}

ONEBIT_ON_EVERY_BACKEND(ElementwiseTest);

}  // namespace
}  // namespace onebit::ops
