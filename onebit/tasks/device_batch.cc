#include "onebit/tasks/device_batch.h"

namespace onebit::tasks {

DeviceBatchBuffer::DeviceBatchBuffer(Device device, const data::BatchBounds& bounds)
    : device_(device) {
  if (device.is_cpu()) return;
  const auto book = [&](DType dtype, int64_t elements) {
    return Tensor(device, dtype, {elements});
  };
  tokens_ = book(DType::kI32, bounds.rows);
  segments_ = book(DType::kI32, bounds.rows);
  positions_ = book(DType::kI32, bounds.rows);
  row_keys_ = book(DType::kU64, bounds.rows);
  sequence_starts_ = book(DType::kI32, bounds.sequences + 1);
  masked_rows_ = book(DType::kI32, bounds.masked_rows);
  masked_targets_ = book(DType::kI32, bounds.masked_rows);
  next_sentence_ = book(DType::kI32, bounds.sequences);
  spans_ = book(DType::kI32, 2 * bounds.sequences);
}

template <typename T>
ConstView DeviceBatchBuffer::place(Tensor& buffer, const std::vector<T>& values) {
  const int64_t count = static_cast<int64_t>(values.size());
  const ConstView host = ConstView::of(values.data(), {count});
  if (device_.is_cpu()) return host;
  const View on_device = buffer.first_rows(count);
  copy(on_device, host);
  return on_device;
}

model::DeviceBatch DeviceBatchBuffer::upload_rows(const data::PackedRows& batch) {
  model::DeviceBatch placed;
  placed.tokens = place(tokens_, batch.tokens);
  placed.segments = place(segments_, batch.segments);
  placed.positions = place(positions_, batch.positions);
  placed.row_keys = place(row_keys_, batch.row_keys);
  placed.sequence_starts = {.device = place(sequence_starts_, batch.sequence_starts),
                            .host = batch.sequence_starts};
  return placed;
}

model::DeviceBatch DeviceBatchBuffer::upload(const data::SpanBatch& batch) {
  model::DeviceBatch placed = upload_rows(batch);
  placed.spans = place(spans_, batch.spans).reshaped({2, batch.sequences()});
  return placed;
}

model::DeviceBatch DeviceBatchBuffer::upload(const data::Batch& batch) {
  model::DeviceBatch placed = upload_rows(batch);
  placed.masked_rows = place(masked_rows_, batch.masked_rows);
  placed.masked_targets = place(masked_targets_, batch.masked_targets);
  placed.next_sentence = place(next_sentence_, batch.next_sentence);
  return placed;
}

model::BatchLimits limits_of(const data::BatchBounds& bounds) {
  return {.rows = bounds.rows, .sequences = bounds.sequences, .masked = bounds.masked_rows};
}

}  // namespace onebit::tasks
