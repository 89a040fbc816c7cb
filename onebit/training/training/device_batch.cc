#include "onebit/training/training/device_batch.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <numeric>
#include <vector>

namespace onebit::training {

namespace {

constexpr int64_t kAlignmentBytes = 256;
constexpr int64_t kArrays = 9;  // of a batch

int64_t aligned(int64_t size_bytes) {
  return (size_bytes + kAlignmentBytes - 1) / kAlignmentBytes * kAlignmentBytes;
}

int64_t block_bytes(const batches::BatchBounds& bounds) {
  const int64_t rows = bounds.rows * (3 * size_bytes_of(DType::kI32) + size_bytes_of(DType::kU64));
  const int64_t labelled = bounds.labelled_rows * 2 * size_bytes_of(DType::kI32);
  const int64_t sequences =
      ((1 + batches::kMostSequenceLabels) * bounds.sequences + 1) * size_bytes_of(DType::kI32);
  const int64_t values = bounds.sequence_values * size_bytes_of(DType::kF32);
  return rows + labelled + sequences + values + kArrays * kAlignmentBytes;
}

}  // namespace

DeviceBatchBuffer::DeviceBatchBuffer(Device device, const batches::BatchBounds& bounds,
                                     std::optional<int32_t> uncounted)
    : device_(device), bounds_(bounds), uncounted_(uncounted), size_bytes_(block_bytes(bounds)) {
  if (device.is_cpu()) return;
  copies_ = Context::cuda(device.index);
  for (Slot& slot : slots_) {
    slot.host = Staging(device, size_bytes_);
    slot.device = Buffer(device, size_bytes_);
  }
}

void DeviceBatchBuffer::begin(Context& context) {
  used_bytes_ = 0;
  if (device_.is_cpu()) return;
  // All work on the previous batch has been submitted to the context by now.
  slots_[1 - turn_].read = context.milestone();
  slots_[turn_].host.wait();
}

ConstView DeviceBatchBuffer::place(const ConstView& host) {
  const int64_t at = used_bytes_;
  used_bytes_ += aligned(host.size_bytes());
  // On every device, so that a task whose labels need more is found without a GPU.
  ONEBIT_INVARIANT(used_bytes_ <= size_bytes_);
  if (device_.is_cpu()) return host;
  const Slot& slot = slots_[turn_];
  if (host.elements() > 0)
    std::memcpy(slot.host.data() + at, host.raw(), static_cast<size_t>(host.size_bytes()));
  return {slot.device.data() + at, host.dtype(), host.shape(), device_};
}

void DeviceBatchBuffer::send(Context& context) {
  if (device_.is_cpu()) return;
  Slot& slot = slots_[turn_];
  copies_->wait_for(slot.read);
  slot.host.upload(*copies_, slot.device.data(), used_bytes_);
  context.wait_for(copies_->milestone());
  turn_ = 1 - turn_;
}

// As transformers counts: such a token has the position before the first, and the one behind it
// goes on from the one before it.
void DeviceBatchBuffer::count_positions(const batches::Batch& batch) {
  counted_.resize(batch.tokens.size());
  for (size_t sequence = 0; sequence + 1 < batch.sequence_starts.size(); ++sequence) {
    int32_t next = 1;
    for (auto row = static_cast<size_t>(batch.sequence_starts[sequence]);
         row < static_cast<size_t>(batch.sequence_starts[sequence + 1]); ++row) {
      counted_[row] = batch.tokens[row] == *uncounted_ ? 0 : next++;
    }
  }
}

model::DeviceBatch DeviceBatchBuffer::upload(Context& context, const batches::Batch& batch) {
  const auto placed = [this](const auto& values) {
    return place(ConstView::of(values.data(), {static_cast<int64_t>(values.size())}));
  };
  const bool has_uncounted =
      uncounted_ && std::ranges::find(batch.tokens, *uncounted_) != batch.tokens.end();
  if (has_uncounted) count_positions(batch);
  begin(context);
  model::DeviceBatch on_device = {
      .tokens = placed(batch.tokens),
      .segments = placed(batch.segments),
      .positions = placed(has_uncounted ? counted_ : batch.positions),
      .lowest_position = has_uncounted ? -1 : 0,
      .row_keys = placed(batch.row_keys),
      .sequence_starts = {.device = placed(batch.sequence_starts), .host = batch.sequence_starts},
      .labelled_rows = placed(batch.labelled_rows),
      .row_labels = placed(batch.row_labels),
      .sequence_labels = placed(batch.sequence_labels),
      .sequence_values = placed(batch.sequence_values)};
  send(context);
  return on_device;
}

int64_t row_class(int64_t rows) {
  const int64_t step = std::clamp<int64_t>(
      static_cast<int64_t>(std::bit_floor(static_cast<uint64_t>(rows))) / 16, 4, 16);
  return (rows + step - 1) / step * step;
}

model::DeviceBatch DeviceBatchBuffer::upload_rounded(Context& context, batches::Batch& batch) {
  const int64_t rows = batch.rows(), added = row_class(rows) - rows;
  const bool has_room = batch.sequences() > 0 && batch.sequences() < bounds_.sequences &&
                        rows + added <= bounds_.rows &&
                        (bounds_.longest == 0 || added <= bounds_.longest);
  if (device_.is_cpu() && added > 0 && has_room) {
    batch.tokens.resize(static_cast<size_t>(rows + added), batch.tokens.front());
    batch.segments.resize(batch.tokens.size(), 0);
    batch.end_sequence(rows, 0);
  }
  return upload(context, batch);
}

model::BatchLimits limits_of(const batches::BatchBounds& bounds) {
  return {.rows = bounds.rows,
          .sequences = bounds.sequences,
          .longest = bounds.longest,
          .labelled = bounds.labelled_rows};
}

int64_t typical_micro_step(std::span<const int64_t> rows, int world_size, int64_t accumulation) {
  const auto ranks = static_cast<size_t>(world_size);
  const size_t micro_steps = rows.size() / ranks;
  const auto a_step = static_cast<size_t>(accumulation);
  double slowest = 0;  // rows per micro-step, mean over steps
  double steps = 0;
  for (size_t begin = 0; begin < micro_steps; begin += a_step, ++steps) {
    const size_t end = std::min(begin + a_step, micro_steps);
    std::vector<int64_t> sums(ranks);
    for (size_t i = begin * ranks; i < end * ranks; ++i) sums[i % ranks] += rows[i];
    slowest += static_cast<double>(*std::max_element(sums.begin(), sums.end())) /
               static_cast<double>(end - begin);
  }
  slowest /= steps;
  const double mean = static_cast<double>(std::accumulate(rows.begin(), rows.end(), int64_t{0})) /
                      static_cast<double>(rows.size());
  const auto distance = [&](size_t micro_step) {
    const auto of_ranks = rows.subspan(micro_step * ranks, ranks);
    const auto most = static_cast<double>(*std::max_element(of_ranks.begin(), of_ranks.end()));
    const auto all =
        static_cast<double>(std::accumulate(of_ranks.begin(), of_ranks.end(), int64_t{0}));
    return std::abs(most - slowest) + std::abs(all / static_cast<double>(ranks) - mean);
  };
  size_t nearest = 0;
  for (size_t i = 1; i < micro_steps; ++i) {
    if (distance(i) < distance(nearest)) nearest = i;
  }
  return static_cast<int64_t>(nearest);
}

int64_t typical_micro_step(const std::function<int64_t(int64_t index)>& rows_of,
                           int64_t accumulation, comm::Communicator& communicator) {
  constexpr int64_t kMax = 32;
  const int64_t micro_steps =
      accumulation < kMax ? kMax / accumulation * accumulation : kMax;  // whole steps
  const int64_t ranks = communicator.world_size();
  std::vector<int64_t> rows(static_cast<size_t>(micro_steps * ranks));
  for (int64_t i = 0; i < micro_steps; ++i) {
    rows[static_cast<size_t>(i * ranks + communicator.rank())] = rows_of(i);
  }
  communicator.all_reduce(std::span<int64_t>(rows), comm::Reduction::kSum);
  return typical_micro_step(rows, communicator.world_size(), accumulation);
}

}  // namespace onebit::training
