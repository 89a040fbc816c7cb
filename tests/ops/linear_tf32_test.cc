#include <cmath>

#include "onebit/math/device/device_stream.h"
#include "onebit/math/ops/linear.h"
#include "tests/ops/backend_test.h"

namespace onebit::ops {
namespace {

using reference::Matrix;

class LinearTf32Test : public BackendTest {};

// Tensor cores take tf32, of 11 significant bits; whether they round or cut is theirs to choose.
TEST_P(LinearTf32Test, OperandsMayBeRoundedToTf32) {
  if (context().device().is_cpu() || dtype() != DType::kF32) {
    GTEST_SKIP() << "for f32 on CUDA devices";
  }
  const Matrix x = random(96, 256, 1), weight = random(64, 256, 2);
  const Tensor on_x = upload(x), on_weight = upload(weight), y = zeros({96, 64});
  const Matrix wanted = product(x, transposed(weight));
  const double size = reference::largest(product(absolute(x), absolute(transposed(weight))));
  const auto error = [&] {
    linear(context(), {.x = on_x.view(), .weight = on_weight.view(), .bias = {}, .y = y.view()});
    const Tensor got = to_cpu_f32(y.view());
    double most = 0;
    for (size_t i = 0; i < wanted.data.size(); ++i) {
      most = std::max(most, std::abs(double{got.data<float>()[i]} - wanted.data[i]));
    }
    return most;
  };
  const double exact = error();
  context().cuda().allow_tf32(true);
  EXPECT_GT(error(), 10 * exact);
  EXPECT_LE(error(), 2 * 0x1p-10 * size);
  context().cuda().allow_tf32(false);
  EXPECT_EQ(error(), exact);
}

ONEBIT_ON_EVERY_BACKEND(LinearTf32Test);

}  // namespace
}  // namespace onebit::ops
