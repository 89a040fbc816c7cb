// A micro-batch of examples, each of several texts, and its upload to the model's device.
#pragma once

#include "onebit/apps/embed/example_stream.h"
#include "onebit/training/training/batch_source.h"

namespace onebit::embed {

struct EmbeddedBatch : training::HostBatch {
  const batches::PackedRows& rows() const override { return batch; }
  model::DeviceBatch upload(Context& context, training::DeviceBatchBuffer& buffer) const override {
    using model::DeviceBatch;
    if (batch.scores.empty()) return buffer.upload(context, batch);
    return buffer.upload(context, batch, {{&DeviceBatch::label_values, batch.scores}});
  }
  int64_t items() const override { return batch.examples(); }

  EmbedBatch batch;
};

}  // namespace onebit::embed
