// A micro-batch of windows and its upload to the model's device.
#pragma once

#include "onebit/apps/squad/span_stream.h"
#include "onebit/training/training/batch_source.h"

namespace onebit::squad {

struct SquadBatch : training::HostBatch {
  const batches::PackedRows& rows() const override { return batch; }
  model::DeviceBatch upload(Context& context, training::DeviceBatchBuffer& buffer) const override {
    return buffer.upload(context, batch, {{&model::DeviceBatch::spans, batch.spans, 2}});
  }

  SpanBatch batch;
};

}  // namespace onebit::squad
