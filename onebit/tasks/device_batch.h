// Batches on the model's device.
#pragma once

#include "onebit/data/batch.h"
#include "onebit/data/span_stream.h"
#include "onebit/model/batch.h"
#include "onebit/tensor/tensor.h"

namespace onebit::tasks {

// On the CPU the views show the batch's own vectors; on a CUDA device its memory is booked once for
// the largest batch and filled by upload().
class DeviceBatchBuffer {
 public:
  DeviceBatchBuffer(Device device, const data::BatchBounds& bounds);

  // Valid until the next upload() and while `batch` lives unchanged.
  model::DeviceBatch upload(const data::Batch& batch);
  model::DeviceBatch upload(const data::SpanBatch& batch);

 private:
  model::DeviceBatch upload_rows(const data::PackedRows& rows);
  template <typename T>
  ConstView place(Tensor& buffer, const std::vector<T>& values);

  Device device_;
  Tensor tokens_, segments_, positions_, row_keys_, sequence_starts_;
  Tensor masked_rows_, masked_targets_, next_sentence_, spans_;
};

model::BatchLimits limits_of(const data::BatchBounds& bounds);

}  // namespace onebit::tasks
