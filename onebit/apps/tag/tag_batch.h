// A micro-batch of sentences and its upload to the model's device.
#pragma once

#include "onebit/apps/tag/window_stream.h"
#include "onebit/training/training/batch_source.h"

namespace onebit::tag {

struct TaggedBatch : training::HostBatch {
  const batches::PackedRows& rows() const override { return batch; }
  model::DeviceBatch upload(Context& context, training::DeviceBatchBuffer& buffer) const override {
    using model::DeviceBatch;
    return buffer.upload(
        context, batch,
        {{&DeviceBatch::tagged_rows, batch.tagged_rows}, {&DeviceBatch::tags, batch.tags}});
  }
  int64_t items() const override { return static_cast<int64_t>(batch.tagged_rows.size()); }

  TagBatch batch;
};

}  // namespace onebit::tag
