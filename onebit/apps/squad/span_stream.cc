#include "onebit/apps/squad/span_stream.h"

#include "onebit/ground/base/error.h"

namespace onebit::squad {

SpanStream::SpanStream(const Features& features, const batches::DealOptions& options)
    : features_(features),
      dealer_(lengths_of(features), options,
              fmt::format("{}: {} windows", features.dataset().source, features.windows().size())),
      micro_batch_(options.micro_batch) {}

void SpanStream::build(uint64_t first_sample, int64_t micro_step, batches::Batch& batch) const {
  batch.clear();
  const std::vector<batches::DealtSample> samples = dealer_.deal(first_sample, micro_step);
  batch.sequence_labels.resize(2 * samples.size());
  for (size_t i = 0; i < samples.size(); ++i) {
    const Window& window = features_.windows()[samples[i].item];
    features_.append(window, samples[i].sample, batch);
    batch.sequence_labels[i] = window.start;
    batch.sequence_labels[samples.size() + i] = window.end;
  }
}

batches::BatchBounds SpanStream::bounds() const {
  return bounds_of(features_, micro_batch_);
}

std::vector<int32_t> lengths_of(const Features& features) {
  std::vector<int32_t> lengths;
  lengths.reserve(features.windows().size());
  for (const Window& window : features.windows()) {
    lengths.push_back(static_cast<int32_t>(features.length(window)));
  }
  return lengths;
}

batches::BatchBounds bounds_of(const Features& features, int64_t windows) {
  const int64_t longest = features.options().max_sequence_length;
  return {.sequences = windows, .rows = windows * longest, .longest = longest};
}

void build_batch(const Features& features, std::span<const uint32_t> which, batches::Batch& batch) {
  batch.clear();
  for (const uint32_t window : which) features.append(features.windows()[window], window, batch);
}

}  // namespace onebit::squad
