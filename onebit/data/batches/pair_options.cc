#include "onebit/data/batches/pair_options.h"

#include "onebit/ground/base/error.h"

namespace onebit::batches {

void check(const PairOptions& options) {
  require(options.sequence_length >= kMinSequenceLength &&
              options.sequence_length <= kMaxSequenceLength,
          "sequence_length is {}: it must be between {} and {}", options.sequence_length,
          kMinSequenceLength, kMaxSequenceLength);
  require(options.short_sequence_probability >= 0 && options.short_sequence_probability <= 1,
          "short_sequence_probability is {}: it must be between 0 and 1",
          options.short_sequence_probability);
}

void check(const MaskOptions& options) {
  require(options.probability > 0 && options.probability < 1,
          "the masking probability is {}: it must be between 0 and 1 (0.15 is usual)",
          options.probability);
  require(options.max_predictions >= 1,
          "max_predictions is {}: it must be at least 1 (20 is usual at 128 tokens, 80 at 512)",
          options.max_predictions);
}

}  // namespace onebit::batches
