// Batches on the model's device.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "onebit/data/batches/batch.h"
#include "onebit/exchange/comm/communicator.h"
#include "onebit/math/device/buffer.h"
#include "onebit/math/model/batch.h"

namespace onebit::training {

// On the CPU the views refer to the batch's own vectors. For a CUDA device a batch is packed into
// one block of page-locked memory and copied on a separate stream, while the work on the previous
// batch still runs. Memory for two batches of the largest size is reserved once.
//
// Positions count the tokens of a sequence, except `uncounted`
// (ModelDescription::uncounted_token()).
class DeviceBatchBuffer {
 public:
  DeviceBatchBuffer(Device device, const batches::BatchBounds& bounds,
                    std::optional<int32_t> uncounted);

  const batches::BatchBounds& bounds() const { return bounds_; }

  // The result is valid for work submitted to `context` before the next upload(), as long as the
  // batch lives unchanged. Waits for neither the copy nor the work.
  model::DeviceBatch upload(Context& context, const batches::Batch& batch);

  // Uploads a batch for a prediction. On a CPU it first adds a sequence that nobody reads, if the
  // bounds have room for it: products are then made for few numbers of rows (row_class), and each
  // number costs the first batch that has it a primitive of oneDNN.
  model::DeviceBatch upload_rounded(Context& context, batches::Batch& batch);

 private:
  struct Slot {
    Staging host;
    Buffer device;
    Milestone read;  // after the work that reads it
  };

  void begin(Context& context);
  void count_positions(const batches::Batch& batch);
  ConstView place(const ConstView& host);
  void send(Context& context);

  Device device_;
  batches::BatchBounds bounds_;
  std::optional<int32_t> uncounted_;
  std::vector<int32_t> counted_;   // positions of a batch with such tokens, from -1
  std::optional<Context> copies_;  // the stream of the copies
  std::array<Slot, 2> slots_;
  size_t turn_ = 0;         // the slot of the next batch
  int64_t size_bytes_ = 0;  // of a slot
  int64_t used_bytes_ = 0;  // of that slot
};

// The number of rows to which upload_rounded() fills a batch of `rows`: less than 16 more.
int64_t row_class(int64_t rows);

model::BatchLimits limits_of(const batches::BatchBounds& bounds);

// Selects the micro-batch whose computation represents all of them.

// Returns the index of the micro-step that is most similar to all. `rows` contains the rows
// (tokens) of each micro-batch, [micro-steps, world_size]. The largest micro-batch of the result
// has about the mean rows of a step's slowest rank, and its ranks together have about the mean rows
// of all. `accumulation` consecutive micro-steps form a step, for which ranks wait once. The last
// step may be cut short.
int64_t typical_micro_step(std::span<const int64_t> rows, int world_size, int64_t accumulation);

// The same among the first micro-steps to come, at most 32. `rows_of` returns this rank's rows of
// micro-step `index`, counted from 0 across steps. Collective: all ranks get the same index.
int64_t typical_micro_step(const std::function<int64_t(int64_t index)>& rows_of,
                           int64_t accumulation, comm::Communicator& communicator);

}  // namespace onebit::training
