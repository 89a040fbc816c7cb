#include "onebit/math/tensor/view.h"

#include <gtest/gtest.h>

#include <numeric>
#include <vector>

#include "onebit/math/tensor/tensor.h"

namespace onebit {
namespace {

TEST(Shape, ExtentsElementsAndText) {
  const Shape shape{4, 3, 2};
  EXPECT_EQ(shape.rank(), 3);
  EXPECT_EQ(shape[1], 3);
  EXPECT_EQ(shape.elements(), 24);
  EXPECT_EQ(to_string(shape), "[4, 3, 2]");
  EXPECT_EQ(to_string(Shape{}), "[]");
  EXPECT_EQ(Shape{}.elements(), 1);
  EXPECT_EQ((Shape{7, 0}).elements(), 0);
  EXPECT_EQ((Shape{1 << 20, 1 << 20, 4}).elements(), int64_t{1} << 42);
}

TEST(Shape, EqualityIsOfRankAndExtents) {
  EXPECT_EQ((Shape{2, 3}), (Shape{2, 3}));
  EXPECT_FALSE((Shape{2, 3}) == (Shape{3, 2}));
  EXPECT_FALSE((Shape{2}) == (Shape{2, 0}));
}

TEST(ShapeDeathTest, FiveExtentsAndNegativeOnesAreOurBugs) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_DEATH((Shape{1, 2, 3, 4, 5}), "does not hold");
  EXPECT_DEATH(Shape{-1}, "does not hold");
}

TEST(View, RowsShareTheMemory) {
  std::vector<float> values(24);
  std::iota(values.begin(), values.end(), 0.0f);
  const View view = View::of(values.data(), {4, 3, 2});
  const View middle = view.rows(1, 3);
  EXPECT_EQ(middle.shape(), (Shape{2, 3, 2}));
  EXPECT_EQ(middle.data<float>(), values.data() + 6);
  EXPECT_EQ(middle.elements(), 12);
  EXPECT_EQ(middle.size_bytes(), 48);
  middle.data<float>()[0] = -1;
  EXPECT_EQ(values[6], -1);
  EXPECT_EQ(view.rows(4, 4).elements(), 0);
  EXPECT_EQ(view.rows(0, 4).raw(), view.raw());
}

TEST(View, RowsOfSixteenBitElements) {
  std::vector<bf16> values(12);
  const ConstView view = ConstView::of(values.data(), {6, 2});
  EXPECT_EQ(view.rows(5, 6).data<bf16>(), values.data() + 10);
  EXPECT_EQ(view.size_bytes(), 24);
}

TEST(View, ReshapedKeepsElementsAndType) {
  std::vector<int32_t> values(6);
  const View view = View::of(values.data(), {6});
  const View shaped = view.reshaped({2, 3});
  EXPECT_EQ(shaped.extent(1), 3);
  EXPECT_EQ(shaped.dtype(), DType::kI32);
  EXPECT_EQ(shaped.data<int32_t>(), values.data());
}

TEST(View, AnEmptyViewHasNoMemory) {
  const View view;
  EXPECT_TRUE(view.empty());
  EXPECT_EQ(view.data<float>(), nullptr);
  EXPECT_EQ(view.data<bf16>(), nullptr);
}

TEST(ViewDeathTest, MisuseIsOurBug) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  std::vector<float> values(6);
  const View view = View::of(values.data(), {3, 2});
  EXPECT_DEATH(view.rows(2, 4), "does not hold");
  EXPECT_DEATH(view.rows(2, 1), "does not hold");
  EXPECT_DEATH(view.reshaped({7}), "does not hold");
  EXPECT_DEATH(view.data<double>(), "does not hold");
}

TEST(Tensor, OwnsZeroedMemoryAndGivesFirstRows) {
  const Tensor tensor = Tensor::zeros(Device{}, DType::kF32, {5, 2});
  EXPECT_FALSE(tensor.empty());
  EXPECT_TRUE(Tensor().empty());
  for (int i = 0; i < 10; ++i) EXPECT_EQ(tensor.data<float>()[i], 0.0f);
  const View first = tensor.first_rows(3);
  EXPECT_EQ(first.shape(), (Shape{3, 2}));
  EXPECT_EQ(first.raw(), tensor.view().raw());
}

TEST(Copy, MovesTheBytesOfEqualShapes) {
  std::vector<uint16_t> from = {1, 2, 3}, to(3);
  copy(View::of(to.data(), {3}), ConstView::of(from.data(), {3}));
  EXPECT_EQ(to, from);
}

template <typename T>
std::vector<float> widened(const std::vector<T>& values) {
  const Tensor wide =
      to_cpu_f32(ConstView::of(values.data(), {static_cast<int64_t>(values.size())}));
  EXPECT_EQ(wide.dtype(), DType::kF32);
  return {wide.data<float>(), wide.data<float>() + wide.shape().elements()};
}

TEST(ToCpuF32, WidensEveryFloatingType) {
  const std::vector<float> expected = {1.5f, -0.25f, 0.0f};
  EXPECT_EQ(widened(std::vector<float>{1.5f, -0.25f, 0.0f}), expected);
  EXPECT_EQ(widened(std::vector<double>{1.5, -0.25, 0.0}), expected);
  EXPECT_EQ(widened(std::vector<bf16>{bf16(1.5f), bf16(-0.25f), bf16(0.0f)}), expected);
  EXPECT_EQ(widened(std::vector<f16>{f16(1.5f), f16(-0.25f), f16(0.0f)}), expected);
}

TEST(ToCpuF32, RefusesIntegersByName) {
  try {
    widened(std::vector<int32_t>{1});
    FAIL() << "integers were converted";
  } catch (const Error& error) {
    EXPECT_STREQ(error.what(), "cannot convert i32 to f32");
  }
}

}  // namespace
}  // namespace onebit
