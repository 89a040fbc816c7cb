#include "onebit/math/ops/rows.h"

#include "onebit/math/kernels/argument_check.h"
#include "onebit/math/kernels/device_switch.h"

namespace onebit::ops {

static Work work_of(const GatherRows& a) {
  return kernels::moves(a.y, a.y, a.indices);
}
static Work work_of(const ScatterAddRows& a) {
  return kernels::moves(a.x, a.x, a.x, a.indices);
}

ONEBIT_DEVICE_OP(void, gather_rows, const GatherRows&);
ONEBIT_DEVICE_OP(void, scatter_add_rows, const ScatterAddRows&);

void gather_rows(Context& context, const GatherRows& a) {
  const kernels::ArgumentCheck check(context, "gather_rows");
  check.that(a.x.shape().rank() == 2 && a.y.shape().rank() == 2, "x and y must have 2 axes");
  check.view("x", a.x, a.x.dtype(), a.x.shape());
  check.view("y", a.y, a.x.dtype(), {a.y.extent(0), a.x.extent(1)});
  check.view("indices", a.indices, DType::kI32, {a.y.extent(0)});
  on_device::gather_rows(context, a);
}

void scatter_add_rows(Context& context, const ScatterAddRows& a) {
  const kernels::ArgumentCheck check(context, "scatter_add_rows");
  check.leading("x", a.x, 2);
  check.leading("y", a.y, 2);
  check.view("y", a.y, a.x.dtype(), {a.y.extent(0), a.x.extent(1)});
  check.view("indices", a.indices, DType::kI32, {a.x.extent(0)});
  on_device::scatter_add_rows(context, a);
}

static Work work_of(const SequenceMean& a) {
  return kernels::moves(a.x, a.y);
}
static Work work_of(const SequenceMeanBackward& a) {
  return kernels::moves(a.grad_y, a.grad_x);
}

ONEBIT_DEVICE_OP(void, sequence_mean, const SequenceMean&);
ONEBIT_DEVICE_OP(void, sequence_mean_backward, const SequenceMeanBackward&);

namespace {

// `rows` [rows, columns] and `means` f32 [sequences, columns].
void check_sequences(const kernels::ArgumentCheck& check, ConstView rows, ConstView means,
                     const SequenceStarts& starts) {
  const auto sequences = static_cast<int64_t>(starts.host.size()) - 1;
  check.that(sequences >= 0, "sequence_starts must have at least one entry");
  check.view("sequence_starts", starts.device, DType::kI32, {sequences + 1});
  check.view("the means", means, DType::kF32, {sequences, rows.extent(1)});
  check.that(starts.host.front() == 0 && starts.host.back() == rows.extent(0),
             "sequence_starts must begin with 0 and end with the number of rows");
  for (int64_t s = 0; s < sequences; ++s) {
    const auto at = static_cast<size_t>(s);
    check.that(starts.host[at] < starts.host[at + 1], "every sequence must have at least one row");
  }
}

}  // namespace

void sequence_mean(Context& context, const SequenceMean& a) {
  const kernels::ArgumentCheck check(context, "sequence_mean");
  check.leading("x", a.x, 2);
  check_sequences(check, a.x, a.y, a.sequence_starts);
  on_device::sequence_mean(context, a);
}

void sequence_mean_backward(Context& context, const SequenceMeanBackward& a) {
  const kernels::ArgumentCheck check(context, "sequence_mean_backward");
  check.leading("grad_x", a.grad_x, 2);
  check_sequences(check, a.grad_x, a.grad_y, a.sequence_starts);
  on_device::sequence_mean_backward(context, a);
}

}  // namespace onebit::ops
