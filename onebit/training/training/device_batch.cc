#include "onebit/training/training/device_batch.h"

#include <cstring>

namespace onebit::training {
namespace {

constexpr int64_t kAlignmentBytes = 256;
constexpr int64_t kArrays = 12;  // at most, in a batch of any task

int64_t aligned(int64_t size_bytes) {
  return (size_bytes + kAlignmentBytes - 1) / kAlignmentBytes * kAlignmentBytes;
}

int64_t block_bytes(const batches::BatchBounds& bounds) {
  // Besides tokens and keys there is at most one label for each row, two for each masked or tagged
  // row, three for each sequence.
  const int64_t rows = bounds.rows * (4 * size_bytes_of(DType::kI32) + size_bytes_of(DType::kU64));
  const int64_t marked = (bounds.masked_rows + bounds.tagged_rows) * 2 * size_bytes_of(DType::kI32);
  const int64_t sequences = (4 * bounds.sequences + 1) * size_bytes_of(DType::kI32);
  const int64_t values = bounds.label_values * size_bytes_of(DType::kF32);
  return rows + marked + sequences + values + kArrays * kAlignmentBytes;
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

model::DeviceBatch DeviceBatchBuffer::place_rows(const batches::PackedRows& batch) {
  const auto place_all = [this](const auto& values) {
    return place(ConstView::of(values.data(), {static_cast<int64_t>(values.size())}));
  };
  model::DeviceBatch placed;
  placed.tokens = place_all(batch.tokens);
  placed.segments = place_all(batch.segments);
  placed.positions = place_all(batch.positions);
  placed.row_keys = place_all(batch.row_keys);
  placed.sequence_starts = {.device = place_all(batch.sequence_starts),
                            .host = batch.sequence_starts};
  return placed;
}

model::DeviceBatch DeviceBatchBuffer::upload(Context& context, const batches::PackedRows& rows,
                                             std::initializer_list<BatchLabels> labels) {
  begin(context);
  model::DeviceBatch placed = place_rows(rows);
  for (const BatchLabels& each : labels) {
    const ConstView view = place(each.values);
    placed.*each.place =
        each.rows == 0 ? view : view.reshaped({each.rows, view.elements() / each.rows});
  }
  send(context);
  return placed;
}

model::BatchLimits limits_of(const batches::BatchBounds& bounds) {
  return {.rows = bounds.rows,
          .sequences = bounds.sequences,
          .longest = bounds.longest,
          .masked = bounds.masked_rows,
          .tagged = bounds.tagged_rows};
}

}  // namespace onebit::training
