// Batches on the model's device.
#pragma once

#include <array>
#include <initializer_list>
#include <optional>
#include <span>
#include <vector>

#include "onebit/data/batches/batch.h"
#include "onebit/math/device/buffer.h"
#include "onebit/math/device/staging.h"
#include "onebit/math/model/batch.h"

namespace onebit::training {

// The labels of a batch and the member of DeviceBatch in which the model finds them.
struct BatchLabels {
  // `numbers`, i32 or f32, are on the host; with `matrix_rows` they form a matrix of so many rows.
  template <typename T>
  BatchLabels(ConstView model::DeviceBatch::*member, const std::vector<T>& numbers,
              int64_t matrix_rows = 0)
      : place(member),
        values(ConstView::of(numbers.data(), {static_cast<int64_t>(numbers.size())})),
        rows(matrix_rows) {}

  ConstView model::DeviceBatch::*place;
  ConstView values;
  int64_t rows;  // 0: a list
};

// On the CPU the views refer to the batch's own vectors. For a CUDA device a batch is packed into
// one block of page-locked memory and copied on a separate stream, while the work on the previous
// batch still runs; memory for two batches of the largest size is reserved once.
class DeviceBatchBuffer {
 public:
  DeviceBatchBuffer(Device device, const batches::BatchBounds& bounds);

  // The result is valid for work submitted to `context` before the next upload(), as long as rows
  // and labels live unchanged. Waits for neither the copy nor the work.
  model::DeviceBatch upload(Context& context, const batches::PackedRows& rows,
                            std::initializer_list<BatchLabels> labels = {});

 private:
  struct Slot {
    Staging host;
    Buffer device;
    Milestone read;  // after the work that reads it
  };

  void begin(Context& context);
  model::DeviceBatch place_rows(const batches::PackedRows& rows);
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
