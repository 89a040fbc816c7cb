// A micro-batch of pre-training and its upload to the model's device.
#pragma once

#include "onebit/data/batches/batch.h"
#include "onebit/training/training/batch_source.h"

namespace onebit::pretrain {

// Includes masked words and next-sentence labels; see DeviceBatchBuffer::upload().
model::DeviceBatch upload(Context& context, training::DeviceBatchBuffer& buffer,
                          const batches::Batch& batch);

struct PretrainingBatch : training::HostBatch {
  const batches::PackedRows& rows() const override { return batch; }
  model::DeviceBatch upload(Context& context, training::DeviceBatchBuffer& buffer) const override {
    return pretrain::upload(context, buffer, batch);
  }
  int64_t items() const override { return batch.masked(); }

  batches::Batch batch;
};

}  // namespace onebit::pretrain
