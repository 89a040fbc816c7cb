// Attention of f32 rows that may be rounded to bf16.
#include <gtest/gtest.h>

#include <cstring>
#include <vector>

#include "onebit/ground/base/philox.h"
#include "onebit/math/attention/attention.h"
#include "onebit/math/kernels/bf16_tile_product.h"
#include "onebit/math/ops/elementwise.h"
#include "onebit/math/ops/linear.h"
#include "onebit/math/tensor/tensor.h"

namespace onebit::ops {
namespace {

class RoundedAttention : public testing::Test {
 protected:
  static constexpr int64_t kRows = 139, kHeads = 2;

  Tensor random_qkv(int64_t head_size) {
    Tensor qkv(Device{}, DType::kF32, {kRows, 3 * kHeads * head_size});
    RandomSequence sequence(20, 1, 0);
    for (int64_t i = 0; i < qkv.view().elements(); ++i) {
      qkv.data<float>()[i] = static_cast<float>(sequence.uniform() * 4 - 2);
    }
    return qkv;
  }
  // In f32, of rows of any type.
  Tensor attend(const Tensor& qkv, bool rounds) {
    const std::vector<int32_t> starts = {0, 1, 4, 91, kRows};
    Tensor result(Device{}, qkv.dtype(), {kRows, qkv.shape()[1] / 3});
    attention(context_, {.qkv = qkv.view(),
                         .sequence_starts = {ConstView::of(starts.data(), {5}), starts},
                         .heads = kHeads,
                         .window = 20,
                         .context = result.view(),
                         .rounds = rounds});
    return in_type(result, DType::kF32);
  }
  Tensor in_type(const Tensor& from, DType type) {
    Tensor to(Device{}, type, from.shape());
    cast(context_, {.from = from.view(), .to = to.view()});
    return to;
  }
  static bool are_equal(const Tensor& a, const Tensor& b) {
    return std::memcmp(a.view().raw(), b.view().raw(),
                       static_cast<size_t>(a.view().size_bytes())) == 0;
  }

  Context context_ = Context::cpu(2);
};

TEST_F(RoundedAttention, IsThatOfRoundedRowsWhereTheProcessorMultipliesThem) {
  const Tensor qkv = random_qkv(12), plain = attend(qkv, false), rounded = attend(qkv, true);
  if (kernels::has_bf16_products() && bf16_is_native(context_)) {
    EXPECT_TRUE(are_equal(rounded, attend(in_type(qkv, DType::kBF16), false)));
    EXPECT_FALSE(are_equal(rounded, plain));
  } else {
    EXPECT_TRUE(are_equal(rounded, plain));
  }
}

TEST_F(RoundedAttention, HeadsOfAnOddSizeStayAsTheyAre) {
  const Tensor qkv = random_qkv(7);
  EXPECT_TRUE(are_equal(attend(qkv, true), attend(qkv, false)));
}

}  // namespace
}  // namespace onebit::ops
