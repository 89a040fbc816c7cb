#include "onebit/data/batches/pair_options.h"

#include <algorithm>

#include "onebit/ground/base/error.h"

namespace onebit::batches {

double MaskOptions::probability_at(int64_t update) const {
  if (final_probability) {
    const double done =
        static_cast<double>(update) / static_cast<double>(std::max<int64_t>(updates, 1));
    return probability + (*final_probability - probability) * std::clamp(done, 0.0, 1.0);
  }
  const auto later = probability_since.upper_bound(update);
  return later == probability_since.begin() ? probability : std::prev(later)->second;
}

double MaskOptions::largest_probability() const {
  double largest = std::max(probability, final_probability.value_or(0));
  for (const auto& [update, share] : probability_since) largest = std::max(largest, share);
  return largest;
}

void check(const PairOptions& options) {
  require(options.sequence_length >= kMinSequenceLength &&
              options.sequence_length <= kMaxSequenceLength,
          "sequence_length is {}: it must be between {} and {}", options.sequence_length,
          kMinSequenceLength, kMaxSequenceLength);
  require(options.short_sequence_probability >= 0 && options.short_sequence_probability <= 1,
          "short_sequence_probability is {}: it must be between 0 and 1",
          options.short_sequence_probability);
  require(!options.packing || !options.next_sentence,
          "samples cannot be packed with next_sentence: set one of them to false");
}

void check(const MaskOptions& options) {
  const auto check_share = [](double share) {
    require(share > 0 && share < 1,
            "the masking probability is {}: it must be between 0 and 1 (0.15 is usual)", share);
  };
  check_share(options.probability);
  if (options.final_probability) check_share(*options.final_probability);
  for (const auto& [update, share] : options.probability_since) check_share(share);
  require(options.max_predictions >= 1,
          "max_predictions is {}: it must be at least 1 (20 is usual at 128 tokens, 80 at 512)",
          options.max_predictions);
}

}  // namespace onebit::batches
