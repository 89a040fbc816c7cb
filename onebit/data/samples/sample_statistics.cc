#include "onebit/data/samples/sample_statistics.h"

#include <algorithm>

namespace onebit::samples {

SampleStatistics statistics_of(const SampleStore& store) {
  const int32_t unknown = store.vocabulary()->unknown_id(), mask = store.vocabulary()->mask_id();
  SampleStatistics found;
  corpus::LengthCounter tokens, masked;
  Sample sample;
  for (uint64_t index = 0; index < store.samples(); ++index) {
    store.read(index, sample);
    tokens.add(sample.tokens.size());
    masked.add(sample.masked_ids.size());
    found.unknown_tokens +=
        static_cast<uint64_t>(std::count(sample.tokens.begin(), sample.tokens.end(), unknown));
    for (size_t i = 0; i < sample.masked_ids.size(); ++i) {
      const int32_t shown = sample.tokens[static_cast<size_t>(sample.masked_positions[i])];
      if (shown == sample.masked_ids[i]) {
        ++found.kept;
      } else if (shown != mask) {
        ++found.replaced;
      }
    }
  }
  found.sample_tokens = tokens.statistics();
  found.sample_masked = masked.statistics();
  return found;
}

}  // namespace onebit::samples
