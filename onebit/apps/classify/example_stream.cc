#include "onebit/apps/classify/example_stream.h"

#include "onebit/ground/base/error.h"

namespace onebit::classify {

void ExampleBatch::clear() {
  clear_rows();
  classes.clear();
  values.clear();
}

void ExampleBatch::reserve(const batches::BatchBounds& bounds) {
  reserve_rows(bounds);
  classes.reserve(static_cast<size_t>(bounds.sequences));
  values.reserve(static_cast<size_t>(bounds.label_values));
}

ExampleStream::ExampleStream(const finetune::EncodedExamples& examples, const Targets& targets,
                             const batches::DealOptions& options, const std::string& source)
    : examples_(examples),
      targets_(targets),
      dealer_(examples.lengths(), options, fmt::format("{}: {} examples", source, examples.size())),
      micro_batch_(options.micro_batch) {
  ONEBIT_INVARIANT(examples.size() == targets.examples());
}

void ExampleStream::build(uint64_t first_sample, int64_t micro_step, ExampleBatch& batch) const {
  batch.clear();
  for (const batches::DealtSample& dealt : dealer_.deal(first_sample, micro_step)) {
    examples_.append(dealt.item, dealt.sample, batch);
    if (targets_.problem == Problem::kSingleLabel) {
      batch.classes.push_back(targets_.classes[dealt.item]);
    } else {
      const auto first = targets_.values.begin() + int64_t{dealt.item} * targets_.outputs;
      batch.values.insert(batch.values.end(), first, first + targets_.outputs);
    }
  }
}

batches::BatchBounds ExampleStream::bounds() const {
  const bool has_values = targets_.problem != Problem::kSingleLabel;
  return {.sequences = micro_batch_,
          .rows = micro_batch_ * examples_.longest(),
          .longest = examples_.longest(),
          .label_values = has_values ? micro_batch_ * targets_.outputs : 0};
}

}  // namespace onebit::classify
