#include "onebit/apps/tag/window_stream.h"

#include "onebit/ground/base/error.h"

namespace onebit::tag {

WindowStream::WindowStream(const EncodedSentences& sentences, std::span<const int32_t> targets,
                           const batches::DealOptions& options, const std::string& source)
    : sentences_(sentences),
      targets_(targets),
      dealer_(sentences.lengths(), options,
              fmt::format("{}: {} sequences", source, sentences.windows().size())),
      micro_batch_(options.micro_batch) {
  ONEBIT_INVARIANT(sentences.words() == static_cast<int64_t>(targets.size()));
}

void WindowStream::build(uint64_t first_sample, int64_t micro_step, batches::Batch& batch) const {
  batch.clear();
  for (const batches::DealtSample& dealt : dealer_.deal(first_sample, micro_step)) {
    sentences_.append(dealt.item, dealt.sample, batch);
    const Window& window = sentences_.windows()[dealt.item];
    const auto tags = targets_.subspan(window.first_word, window.words.owned);
    batch.row_labels.insert(batch.row_labels.end(), tags.begin(), tags.end());
  }
}

batches::BatchBounds WindowStream::bounds() const {
  return bounds_of(sentences_, micro_batch_);
}

batches::BatchBounds bounds_of(const EncodedSentences& sentences, int64_t windows) {
  return {.sequences = windows,
          .rows = windows * sentences.longest(),
          .longest = sentences.longest(),
          .labelled_rows = windows * sentences.most_owned()};
}

void build_batch(const EncodedSentences& sentences, std::span<const uint32_t> which,
                 batches::Batch& batch) {
  batch.clear();
  for (const uint32_t window : which) {
    sentences.append(window, window, batch);
  }
}

}  // namespace onebit::tag
