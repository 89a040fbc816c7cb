#include "onebit/training/finetune/encoded_examples.h"

#include <fmt/format.h>

#include <algorithm>

#include "onebit/data/text/tokenizer.h"
#include "onebit/ground/base/error.h"
#include "onebit/ground/base/parallel_for.h"

namespace onebit::finetune {

PartLengths cut_longest_first(PartLengths lengths, int64_t most) {
  if (lengths.first + lengths.second <= most) return lengths;
  const bool first_is_longer = lengths.first > lengths.second;
  int64_t shorter = std::min(lengths.first, lengths.second);
  int64_t longer = std::max(shorter, most - shorter);
  if (shorter + longer > most) {
    shorter = most / 2;
    longer = shorter + most % 2;
  }
  return first_is_longer ? PartLengths{longer, shorter} : PartLengths{shorter, longer};
}

EncodedExamples::EncodedExamples(std::span<const Example> examples,
                                 const std::shared_ptr<const text::Vocabulary>& vocabulary,
                                 text::Casing casing, const EncodeOptions& options)
    : sequences_(examples.size()), lengths_(examples.size()) {
  const text::PairTemplate& pair_template = vocabulary->pair_template();
  second_segment_ = pair_template.second_segment;
  const int64_t special = options.has_pairs ? 2 + pair_template.separators : 2;
  require(options.max_sequence_length > special,
          "a sequence length of {} leaves no room for text: {} tokens are special",
          options.max_sequence_length, special);
  const int64_t most = options.max_sequence_length - special;
  const auto encode = [&](text::Tokenizer& tokenizer, const Example& example, Sequence& sequence) {
    std::vector<int32_t> first, second;
    tokenizer.encode(example.text, first);
    if (options.has_pairs) tokenizer.encode(example.text_pair, second);
    const PartLengths whole = {static_cast<int64_t>(first.size()),
                               static_cast<int64_t>(second.size())};
    const PartLengths kept = cut_longest_first(whole, most);
    sequence.is_cut = !(kept == whole);
    const auto add = [&](const std::vector<int32_t>& ids, int64_t count) {
      sequence.tokens.insert(sequence.tokens.end(), ids.begin(), ids.begin() + count);
      sequence.tokens.push_back(vocabulary->sep_id());
    };
    sequence.tokens.reserve(static_cast<size_t>(kept.first + kept.second + special));
    sequence.tokens.push_back(vocabulary->cls_id());
    add(first, kept.first);
    for (int i = 1; options.has_pairs && i < pair_template.separators; ++i) {
      sequence.tokens.push_back(vocabulary->sep_id());
    }
    sequence.first_part = static_cast<int64_t>(sequence.tokens.size());
    if (options.has_pairs) add(second, kept.second);
  };
  parallel_for(options.threads, static_cast<int64_t>(examples.size()), 16,
               [&](int64_t begin, int64_t end) {
                 text::Tokenizer tokenizer(vocabulary, casing);
                 for (int64_t i = begin; i < end; ++i) {
                   const auto index = static_cast<size_t>(i);
                   encode(tokenizer, examples[index], sequences_[index]);
                 }
               });
  for (size_t i = 0; i < sequences_.size(); ++i) {
    lengths_[i] = static_cast<int32_t>(sequences_[i].tokens.size());
    cut_ += sequences_[i].is_cut ? 1 : 0;
  }
}

int64_t EncodedExamples::longest() const {
  return lengths_.empty() ? 0 : *std::max_element(lengths_.begin(), lengths_.end());
}

void EncodedExamples::append(uint32_t example, uint64_t sample, batches::Batch& batch) const {
  const Sequence& sequence = sequences_[example];
  const int64_t first_row = batch.rows();
  batch.tokens.insert(batch.tokens.end(), sequence.tokens.begin(), sequence.tokens.end());
  batch.segments.resize(static_cast<size_t>(first_row + sequence.first_part), 0);
  batch.segments.resize(batch.tokens.size(), second_segment_);
  batch.end_sequence(first_row, sample);
}

batches::BatchBounds bounds_of(const EncodedExamples& examples, int64_t sequences) {
  return {.sequences = sequences,
          .rows = sequences * examples.longest(),
          .longest = examples.longest()};
}

void build_batch(const EncodedExamples& examples, std::span<const uint32_t> which,
                 batches::Batch& batch) {
  batch.clear();
  for (const uint32_t example : which) examples.append(example, example, batch);
}

void report_cut(const CutTexts& texts, std::vector<std::string>& decisions) {
  if (texts.cut == 0) return;
  decisions.push_back(
      fmt::format("{}: {} of {} texts are longer than {} tokens and were truncated{} "
                  "(data.max_sequence_length)",
                  texts.source, texts.cut, texts.all, texts.max_sequence_length,
                  texts.pairs ? ", the longer text of a pair first" : ""));
}

}  // namespace onebit::finetune
