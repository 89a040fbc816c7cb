#include <algorithm>

#include "onebit/math/device/memory.h"
#include "onebit/math/tensor/tensor.h"

namespace onebit {
namespace {

template <typename T>
void widen(const T* from, float* to, int64_t count) {
  std::transform(from, from + count, to, [](T value) { return static_cast<float>(value); });
}

}  // namespace

void copy(View to, ConstView from) {
  ONEBIT_INVARIANT(to.dtype() == from.dtype() && to.elements() == from.elements());
  memory::copy(to.device(), to.raw(), from.device(), from.raw(), from.size_bytes());
}

Tensor to_cpu_f32(ConstView from) {
  Tensor staged(Device{}, from.dtype(), from.shape());
  copy(staged.view(), from);
  if (from.dtype() == DType::kF32) return staged;
  Tensor result(Device{}, DType::kF32, from.shape());
  float* to = result.data<float>();
  const int64_t count = from.elements();
  switch (from.dtype()) {
    case DType::kBF16:
      widen(staged.data<bf16>(), to, count);
      break;
    case DType::kF16:
      widen(staged.data<f16>(), to, count);
      break;
    case DType::kF64:
      widen(staged.data<double>(), to, count);
      break;
    default:
      fail("cannot convert {} to f32", name_of(from.dtype()));
  }
  return result;
}

}  // namespace onebit
