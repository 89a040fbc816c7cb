#include "onebit/data/batches/sample_source.h"

#include <algorithm>
#include <utility>

#include "onebit/data/batches/permutation.h"
#include "onebit/ground/base/error.h"

namespace onebit::batches {

SampleSource::SampleSource(std::shared_ptr<const samples::SampleStore> store,
                           const PairOptions& pairs, uint64_t seed)
    : store_(std::move(store)), next_sentence_(pairs.next_sentence), seed_(seed) {
  check(pairs);
  const samples::SampleManifest& manifest = store_->manifest();
  require(manifest.longest_tokens <= static_cast<uint64_t>(pairs.sequence_length),
          "{}: has samples of up to {} tokens, but the sequence length is {}, and samples are not "
          "truncated: set data.sequence_length (evaluate: --sequence-length) to {}, with a model "
          "of as many positions, or prepare files with shorter samples",
          store_->folder().string(), manifest.longest_tokens, pairs.sequence_length,
          manifest.longest_tokens);
  require(!next_sentence_ || manifest.labels > 0,
          "{}: its samples have no next-sentence label: set data.next_sentence to false (evaluate: "
          "--no-next-sentence)",
          store_->folder().string());
}

void SampleSource::restore(const EpochMark& mark) {
  const uint64_t size = store_->samples();
  require(mark.first_examples == size && mark.begin / size == mark.epoch && mark.begin % size == 0,
          "invalid data position: epoch {} at example {}; every epoch has {} examples", mark.epoch,
          mark.begin, size);
}

DataPosition SampleSource::locate(uint64_t counter) {
  return {counter / store_->samples(), counter % store_->samples()};
}

EpochMark SampleSource::mark(uint64_t counter) {
  const DataPosition position = locate(counter);
  return {store_->samples(), position.epoch, counter - position.index};
}

// Every epoch is the same, and a sample is read whole.
EpochFigures SampleSource::figures(uint64_t) {
  const samples::SampleManifest& manifest = store_->manifest();
  const uint64_t labels = next_sentence_ ? manifest.labels : 0;
  const uint64_t continue_text = labels - std::min(labels, manifest.random_next);
  return {.examples = store_->samples(),
          .could_continue = continue_text,
          .continue_text = continue_text,
          .parts = store_->samples(),
          .tokens = store_->tokens(),
          .read_tokens = store_->tokens()};
}

BatchBounds SampleSource::bounds() const {
  const auto longest = static_cast<int64_t>(store_->manifest().longest_tokens);
  return {.sequences = 1,
          .rows = longest,
          .longest = longest,
          .labelled_rows = static_cast<int64_t>(store_->manifest().most_masked)};
}

void SampleSource::append(DataPosition position, uint64_t sample, double /*masked*/, Batch& batch) {
  // One per thread: building a batch allocates nothing once it has grown.
  thread_local samples::Sample read;
  const Permutation order(store_->samples(),
                          derived_seed(seed_, RandomStream::kEpoch, position.epoch));
  store_->read(order(position.index), read);
  const int64_t first_row = batch.rows();
  batch.tokens.insert(batch.tokens.end(), read.tokens.begin(), read.tokens.end());
  batch.segments.resize(batch.segments.size() + static_cast<size_t>(read.first_part), 0);
  batch.segments.resize(batch.tokens.size(), 1);
  for (size_t i = 0; i < read.masked_ids.size(); ++i) {
    batch.labelled_rows.push_back(static_cast<int32_t>(first_row) + read.masked_positions[i]);
    batch.row_labels.push_back(read.masked_ids[i]);
  }
  batch.sequence_labels.push_back(next_sentence_ ? read.next_sentence : samples::kNoLabel);
  batch.end_sequence(first_row, sample);
}

}  // namespace onebit::batches
