// Batches of windows of sentences, packed without padding.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "onebit/apps/tag/encoded_sentences.h"
#include "onebit/data/batches/batch.h"
#include "onebit/data/batches/step_dealer.h"

namespace onebit::tag {

// Training: every window once per epoch, in a new order each. Usable from any number of threads.
class WindowStream {
 public:
  // Both must outlive the stream; `targets` [words] are those of TagSet. Error: fewer windows than
  // ranks; `source` is the name of the file.
  WindowStream(const EncodedSentences& sentences, std::span<const int32_t> targets,
               const batches::DealOptions& options, const std::string& source);

  uint64_t samples_per_epoch() const { return dealer_.samples_per_epoch(); }
  // Fills `batch` as batches::StepDealer::deal() deals it. Labels of its rows are the targets of
  // words that the windows own.
  void build(uint64_t first_sample, int64_t micro_step, batches::Batch& batch) const;
  batches::BatchBounds bounds() const;

 private:
  const EncodedSentences& sentences_;
  std::span<const int32_t> targets_;
  batches::StepDealer dealer_;
  int64_t micro_batch_;
};

// The bounds of any `windows` windows.
batches::BatchBounds bounds_of(const EncodedSentences& sentences, int64_t windows);

// Prediction: fills `batch` with the windows `which`; its labelled rows have no labels.
void build_batch(const EncodedSentences& sentences, std::span<const uint32_t> which,
                 batches::Batch& batch);

}  // namespace onebit::tag
