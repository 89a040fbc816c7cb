// The least that a user's program does with the installed library: a context, a tensor, a loop.
#include <onebit/ground/base/philox.h>
#include <onebit/math/device/context.h>
#include <onebit/math/tensor/tensor.h>

#include <cstdio>

int main() {
  const onebit::Context context = onebit::Context::cpu(2);
  const auto values =
      onebit::Tensor::zeros(context.device(), onebit::DType::kF32, onebit::Shape{1000});
  context.parallel_for(1000, 1, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      onebit::RandomSequence random(1, 0, static_cast<uint64_t>(i));
      values.data<float>()[i] = static_cast<float>(random.uniform());
    }
  });
  double sum = 0;
  for (int i = 0; i < 1000; ++i) sum += static_cast<double>(values.data<float>()[i]);
  std::printf("mean of 1000 uniform numbers: %.3f\n", sum / 1000);
  return sum > 450 && sum < 550 ? 0 : 1;
}
