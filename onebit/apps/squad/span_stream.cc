#include "onebit/apps/squad/span_stream.h"

#include "onebit/ground/base/error.h"

namespace onebit::squad {
namespace {

std::vector<int32_t> lengths_of(const Features& features) {
  std::vector<int32_t> lengths;
  lengths.reserve(features.windows().size());
  for (const Window& window : features.windows()) {
    lengths.push_back(static_cast<int32_t>(features.length(window)));
  }
  return lengths;
}

// Fills `batch` with `count` windows; dealt(i) is the i-th.
template <typename DealtAt>
void fill(const Features& features, size_t count, const DealtAt& dealt_at, SpanBatch& batch) {
  batch.clear();
  batch.spans.resize(2 * count);
  for (size_t i = 0; i < count; ++i) {
    const batches::DealtSample dealt = dealt_at(i);
    const Window& window = features.windows()[dealt.item];
    features.append(window, dealt.sample, batch);
    batch.spans[i] = window.start;
    batch.spans[count + i] = window.end;
    batch.windows.push_back(dealt.item);
  }
}

}  // namespace

void SpanBatch::clear() {
  clear_rows();
  spans.clear();
  windows.clear();
}

void SpanBatch::reserve(const batches::BatchBounds& bounds) {
  reserve_rows(bounds);
  const auto sequences_booked = static_cast<size_t>(bounds.sequences);
  spans.reserve(2 * sequences_booked);
  windows.reserve(sequences_booked);
}

SpanStream::SpanStream(const Features& features, const batches::DealOptions& options)
    : features_(features),
      dealer_(lengths_of(features), options,
              fmt::format("{}: {} windows", features.dataset().source, features.windows().size())),
      micro_batch_(options.micro_batch) {}

void SpanStream::build(uint64_t first_sample, int64_t micro_step, SpanBatch& batch) const {
  const std::vector<batches::DealtSample> dealt = dealer_.deal(first_sample, micro_step);
  fill(
      features_, dealt.size(), [&](size_t i) { return dealt[i]; }, batch);
}

batches::BatchBounds SpanStream::bounds() const {
  const int64_t longest = features_.options().max_sequence_length;
  return {.sequences = micro_batch_, .rows = micro_batch_ * longest, .longest = longest};
}

SpanSweep::SpanSweep(const Features& features, int64_t batch, int world_size, int rank)
    : features_(features), batch_(batch), sweep_(lengths_of(features), batch, world_size, rank) {}

void SpanSweep::build(int64_t index, SpanBatch& batch) const {
  const auto windows = sweep_.items(index);
  fill(
      features_, windows.size(),
      [&](size_t i) {
        return batches::DealtSample{windows[i], windows[i]};
      },
      batch);
}

batches::BatchBounds SpanSweep::bounds() const {
  const int64_t longest = features_.options().max_sequence_length;
  return {.sequences = batch_, .rows = batch_ * longest, .longest = longest};
}

}  // namespace onebit::squad
