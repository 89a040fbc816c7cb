#include "onebit/apps/classify/example_stream.h"

#include "onebit/ground/base/error.h"

namespace onebit::classify {

ExampleStream::ExampleStream(const finetune::EncodedExamples& examples, const Targets& targets,
                             const batches::DealOptions& options, const std::string& source)
    : examples_(examples),
      targets_(targets),
      dealer_(examples.lengths(), options, fmt::format("{}: {} examples", source, examples.size())),
      micro_batch_(options.micro_batch) {
  ONEBIT_INVARIANT(examples.size() == targets.examples());
}

void ExampleStream::build(uint64_t first_sample, int64_t micro_step, batches::Batch& batch) const {
  batch.clear();
  for (const batches::DealtSample& dealt : dealer_.deal(first_sample, micro_step)) {
    examples_.append(dealt.item, dealt.sample, batch);
    if (targets_.problem == Problem::kSingleLabel) {
      batch.sequence_labels.push_back(targets_.classes[dealt.item]);
    } else {
      const auto first = targets_.values.begin() + int64_t{dealt.item} * targets_.outputs;
      batch.sequence_values.insert(batch.sequence_values.end(), first, first + targets_.outputs);
    }
  }
}

batches::BatchBounds ExampleStream::bounds() const {
  batches::BatchBounds bounds = finetune::bounds_of(examples_, micro_batch_);
  if (targets_.problem != Problem::kSingleLabel) {
    bounds.sequence_values = micro_batch_ * targets_.outputs;
  }
  return bounds;
}

}  // namespace onebit::classify
