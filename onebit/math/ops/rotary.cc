#include "onebit/math/ops/rotary.h"

#include <cmath>

#include "onebit/math/kernels/argument_check.h"
#include "onebit/math/kernels/device_switch.h"

namespace onebit::ops {

// Queries and keys are read and written, values are not.
static Work work_of(const Rotary& a) {
  Work work = kernels::moves(a.qkv, a.qkv);
  work.bytes *= 2.0 / 3;
  return work;
}

ONEBIT_DEVICE_OP(void, rotary, const Rotary&);

void rotary(Context& context, const Rotary& a) {
  const kernels::ArgumentCheck check(context, "rotary");
  check.leading("qkv", a.qkv, 2);
  check.that(a.heads >= 1 && a.qkv.extent(1) % (6 * a.heads) == 0,
             "qkv must have 3 * heads * head_size columns, and head_size must be even");
  check.view("positions", a.positions, DType::kI32, {a.qkv.extent(0)});
  check.leading("turns", a.turns, 2);
  check.view("turns", a.turns, DType::kF32, {a.turns.extent(0), a.qkv.extent(1) / 3 / a.heads});
  on_device::rotary(context, a);
}

Tensor rotary_turns(Device device, double theta, int64_t positions, int64_t head_size) {
  ONEBIT_INVARIANT(head_size % 2 == 0);
  const int64_t half = head_size / 2;
  Tensor turns(Device{}, DType::kF32, {positions, head_size});
  for (int64_t j = 0; j < half; ++j) {
    const float exponent = static_cast<float>(2 * j) / static_cast<float>(head_size);
    const float step = 1.0f / static_cast<float>(std::pow(theta, double{exponent}));
    for (int64_t position = 0; position < positions; ++position) {
      const float angle = static_cast<float>(position) * step;
      float* row = turns.data<float>() + position * head_size;
      row[j] = static_cast<float>(std::cos(double{angle}));
      row[half + j] = static_cast<float>(std::sin(double{angle}));
    }
  }
  if (device.is_cpu()) return turns;
  Tensor there(device, DType::kF32, turns.shape());
  copy(there.view(), turns.view());
  return there;
}

}  // namespace onebit::ops
