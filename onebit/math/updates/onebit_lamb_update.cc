#include "onebit/math/updates/onebit_lamb_update.h"

#include "onebit/math/kernels/argument_check.h"
#include "onebit/math/kernels/device_switch.h"

namespace onebit::updates {

// The parts read as many values as momenta.
static Work work_of(const OnebitLambSquares& a) {
  return kernels::moves(a.momentum, a.momentum, a.mean_residual, a.mean_residual, a.mean_residual);
}
static Work work_of(const OnebitLambStep& a) {
  return kernels::moves(a.value, a.value, a.momentum, a.still, a.compute_value);
}

ONEBIT_DEVICE_OP(void, onebit_lamb_squares, const OnebitLambSquares&);
ONEBIT_DEVICE_OP(void, onebit_lamb_step, const OnebitLambStep&);

namespace {

void check_parts(std::span<const LambPart> parts, std::span<const LambTensor> tensors,
                 const ConstView& owned, const ConstView& share) {
  int64_t end = 0;
  for (const LambPart& part : parts) {
    const int64_t elements = part.end - part.begin;
    ONEBIT_INVARIANT(part.begin >= end && elements > 0 && elements <= kernels::kBlockElements);
    ONEBIT_INVARIANT(part.tensor >= 0 && part.tensor < static_cast<int64_t>(tensors.size()));
    const LambTensor& tensor = tensors[part.tensor];
    ONEBIT_INVARIANT(part.begin >= tensor.begin && part.end <= tensor.end);
    ONEBIT_INVARIANT(part.owned >= 0 && part.owned + elements <= owned.elements());
    ONEBIT_INVARIANT(share.empty() ||
                     (part.in_share >= 0 && part.in_share + elements <= share.elements()));
    end = part.end;
  }
}

}  // namespace

void onebit_lamb_squares(Context& context, const OnebitLambSquares& a) {
  const kernels::ArgumentCheck check(context, "onebit_lamb_squares");
  const auto tensors = static_cast<int64_t>(a.tensors.size());
  check.view("value", a.value, DType::kF32, {a.value.elements()});
  check.view("momentum", a.momentum, DType::kF32, {a.momentum.elements()});
  check.optional("residual", a.residual, DType::kF32, {a.residual.elements()});
  ONEBIT_INVARIANT(a.residual.empty() == a.mean_residual.empty());
  check.optional("mean_residual", a.mean_residual, DType::kF32, {a.momentum.elements()});
  check.view("sums", a.sums, DType::kF64, {tensors, kLambSums});
  kernels::check_lamb_tensors(a.tensors, a.value.elements());
  check_parts(a.parts, a.tensors, a.momentum, a.residual);
  check.optional("parts_on_device", a.parts_on_device, DType::kU8,
                 {static_cast<int64_t>(a.parts.size_bytes())});
  on_device::onebit_lamb_squares(context, a);
}

void onebit_lamb_step(Context& context, const OnebitLambStep& a) {
  const kernels::ArgumentCheck check(context, "onebit_lamb_step");
  const Shape flat{a.value.elements()};
  check.view("value", a.value, DType::kF32, flat);
  check.optional("compute_value", a.compute_value, a.compute_value.dtype(), flat);
  check.view("momentum", a.momentum, DType::kF32, flat);
  check.view("still", a.still, DType::kU8, {(flat[0] + 7) / 8});
  check.view("ratio", a.ratio, DType::kF32, {static_cast<int64_t>(a.tensors.size())});
  kernels::check_lamb_tensors(a.tensors, flat[0]);
  on_device::onebit_lamb_step(context, a);
}

}  // namespace onebit::updates
