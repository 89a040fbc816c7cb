// A micro-batch of labelled texts and its upload to the model's device.
#pragma once

#include "onebit/apps/classify/example_stream.h"
#include "onebit/training/training/batch_source.h"

namespace onebit::classify {

struct ClassifyBatch : training::HostBatch {
  const batches::PackedRows& rows() const override { return batch; }
  model::DeviceBatch upload(Context& context, training::DeviceBatchBuffer& buffer) const override {
    using model::DeviceBatch;
    if (batch.values.empty()) {
      return buffer.upload(context, batch, {{&DeviceBatch::classes, batch.classes}});
    }
    return buffer.upload(context, batch,
                         {{&DeviceBatch::label_values, batch.values, batch.sequences()}});
  }

  ExampleBatch batch;
};

}  // namespace onebit::classify
