// Batches on the model's device.
#pragma once

#include <array>
#include <optional>

#include "onebit/data/batches/batch.h"
#include "onebit/math/device/buffer.h"
#include "onebit/math/device/staging.h"
#include "onebit/math/model/batch.h"

namespace onebit::training {

// On the CPU the views refer to the batch's own vectors. For a CUDA device a batch is packed into
// one block of page-locked memory and copied on a separate stream, while the work on the previous
// batch still runs; memory for two batches of the largest size is reserved once.
class DeviceBatchBuffer {
 public:
  DeviceBatchBuffer(Device device, const batches::BatchBounds& bounds);

  // The result is valid for work submitted to `context` before the next upload(), as long as the
  // batch lives unchanged. Waits for neither the copy nor the work.
  model::DeviceBatch upload(Context& context, const batches::Batch& batch);

 private:
  struct Slot {
    Staging host;
    Buffer device;
    Milestone read;  // after the work that reads it
  };

  void begin(Context& context);
  ConstView place(const ConstView& host);
  void send(Context& context);

  Device device_;
  std::optional<Context> copies_;  // the stream of the copies
  std::array<Slot, 2> slots_;
  size_t turn_ = 0;         // the slot of the next batch
  int64_t size_bytes_ = 0;  // of a slot
  int64_t used_bytes_ = 0;  // of that slot
};

model::BatchLimits limits_of(const batches::BatchBounds& bounds);

}  // namespace onebit::training
