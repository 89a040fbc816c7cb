#include "onebit/training/training/device_batch.h"

#include <cstring>

namespace onebit::training {
namespace {

constexpr int64_t kAlignmentBytes = 256;
constexpr int64_t kArrays = 9;  // of a batch

int64_t aligned(int64_t size_bytes) {
  return (size_bytes + kAlignmentBytes - 1) / kAlignmentBytes * kAlignmentBytes;
}

int64_t block_bytes(const batches::BatchBounds& bounds) {
  const int64_t rows = bounds.rows * (3 * size_bytes_of(DType::kI32) + size_bytes_of(DType::kU64));
  const int64_t labelled = bounds.labelled_rows * 2 * size_bytes_of(DType::kI32);
  const int64_t sequences =
      ((1 + batches::kMostSequenceLabels) * bounds.sequences + 1) * size_bytes_of(DType::kI32);
  const int64_t values = bounds.sequence_values * size_bytes_of(DType::kF32);
  return rows + labelled + sequences + values + kArrays * kAlignmentBytes;
}

}  // namespace

DeviceBatchBuffer::DeviceBatchBuffer(Device device, const batches::BatchBounds& bounds)
    : device_(device), size_bytes_(block_bytes(bounds)) {
  if (device.is_cpu()) return;
  copies_ = Context::cuda(device.index);
  for (Slot& slot : slots_) {
    slot.host = Staging(device, size_bytes_);
    slot.device = Buffer(device, size_bytes_);
  }
}

void DeviceBatchBuffer::begin(Context& context) {
  used_bytes_ = 0;
  if (device_.is_cpu()) return;
  // All work on the previous batch has been submitted to the context by now.
  slots_[1 - turn_].read = context.milestone();
  slots_[turn_].host.wait();
}

ConstView DeviceBatchBuffer::place(const ConstView& host) {
  const int64_t at = used_bytes_;
  used_bytes_ += aligned(host.size_bytes());
  // On every device, so that a task whose labels need more is found without a GPU.
  ONEBIT_INVARIANT(used_bytes_ <= size_bytes_);
  if (device_.is_cpu()) return host;
  const Slot& slot = slots_[turn_];
  if (host.elements() > 0)
    std::memcpy(slot.host.data() + at, host.raw(), static_cast<size_t>(host.size_bytes()));
  return {slot.device.data() + at, host.dtype(), host.shape(), device_};
}

void DeviceBatchBuffer::send(Context& context) {
  if (device_.is_cpu()) return;
  Slot& slot = slots_[turn_];
  copies_->wait_for(slot.read);
  slot.host.upload(*copies_, slot.device.data(), used_bytes_);
  context.wait_for(copies_->milestone());
  turn_ = 1 - turn_;
}

model::DeviceBatch DeviceBatchBuffer::upload(Context& context, const batches::Batch& batch) {
  const auto placed = [this](const auto& values) {
    return place(ConstView::of(values.data(), {static_cast<int64_t>(values.size())}));
  };
  begin(context);
  model::DeviceBatch on_device = {
      .tokens = placed(batch.tokens),
      .segments = placed(batch.segments),
      .positions = placed(batch.positions),
      .row_keys = placed(batch.row_keys),
      .sequence_starts = {.device = placed(batch.sequence_starts), .host = batch.sequence_starts},
      .labelled_rows = placed(batch.labelled_rows),
      .row_labels = placed(batch.row_labels),
      .sequence_labels = placed(batch.sequence_labels),
      .sequence_values = placed(batch.sequence_values)};
  send(context);
  return on_device;
}

model::BatchLimits limits_of(const batches::BatchBounds& bounds) {
  return {.rows = bounds.rows,
          .sequences = bounds.sequences,
          .longest = bounds.longest,
          .labelled = bounds.labelled_rows};
}

}  // namespace onebit::training
