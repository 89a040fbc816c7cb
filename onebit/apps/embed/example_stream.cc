#include "onebit/apps/embed/example_stream.h"

#include <algorithm>

#include "onebit/ground/base/error.h"

namespace onebit::embed {
namespace {

// The number of tokens of each example, over all its texts.
std::vector<int32_t> lengths_of(const finetune::EncodedExamples& encoded, int64_t parts) {
  const std::vector<int32_t>& texts = encoded.lengths();
  std::vector<int32_t> lengths(texts.size() / static_cast<size_t>(parts), 0);
  for (size_t i = 0; i < texts.size(); ++i) lengths[i / static_cast<size_t>(parts)] += texts[i];
  return lengths;
}

}  // namespace

ExampleStream::ExampleStream(const finetune::EncodedExamples& encoded, const Examples& examples,
                             const batches::DealOptions& options)
    : encoded_(encoded),
      examples_(examples),
      dealer_(lengths_of(encoded, examples.parts()), options,
              fmt::format("{}: {} examples", examples.source(), examples.size())),
      micro_batch_(options.micro_batch) {
  ONEBIT_INVARIANT(encoded.size() == examples.size() * examples.parts());
  const std::vector<int32_t> lengths = lengths_of(encoded, examples.parts());
  longest_ = *std::max_element(lengths.begin(), lengths.end());
}

void ExampleStream::build(uint64_t first_sample, int64_t micro_step, batches::Batch& batch) const {
  batch.clear();
  const auto parts = static_cast<uint32_t>(examples_.parts());
  for (const batches::DealtSample& dealt : dealer_.deal(first_sample, micro_step)) {
    for (uint32_t part = 0; part < parts; ++part) {
      // Each text has a dropout mask of its own.
      encoded_.append(dealt.item * parts + part, dealt.sample * parts + part, batch);
    }
    if (!examples_.scores.empty()) {
      batch.sequence_values.push_back(examples_.scores[dealt.item]);
    }
  }
}

batches::BatchBounds ExampleStream::bounds() const {
  return {.sequences = micro_batch_ * examples_.parts(),
          .rows = micro_batch_ * longest_,
          .longest = longest_,
          .sequence_values = examples_.scores.empty() ? 0 : micro_batch_};
}

}  // namespace onebit::embed
