#include "onebit/training/finetune/encoded_examples.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "onebit/data/text/tokenizer.h"
#include "onebit/ground/base/error.h"
#include "onebit/ground/base/log.h"
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

TokenSequence make_sequence(std::span<const int32_t> first,
                            std::optional<std::span<const int32_t>> second,
                            const text::Vocabulary& vocabulary, int64_t max_sequence_length,
                            CutEnd cut_end) {
  const int separators = vocabulary.pair_template().separators;
  const int64_t special = second ? 2 + separators : 2;
  require(max_sequence_length > special,
          "a sequence length of {} leaves no room for text: {} tokens are special; "
          "choose a longer one (data.max_sequence_length)",
          max_sequence_length, special);
  const PartLengths whole = {static_cast<int64_t>(first.size()),
                             second ? static_cast<int64_t>(second->size()) : 0};
  const PartLengths kept = cut_longest_first(whole, max_sequence_length - special);
  TokenSequence sequence;
  sequence.is_cut = !(kept == whole);
  sequence.tokens.reserve(static_cast<size_t>(kept.first + kept.second + special));
  const auto add = [&](std::span<const int32_t> ids, int64_t count) {
    const auto length = static_cast<size_t>(count);
    const auto part = cut_end == CutEnd::kRight ? ids.first(length) : ids.last(length);
    sequence.tokens.insert(sequence.tokens.end(), part.begin(), part.end());
    sequence.tokens.push_back(vocabulary.sep_id());
  };
  sequence.tokens.push_back(vocabulary.cls_id());
  add(first, kept.first);
  for (int i = 1; second && i < separators; ++i) sequence.tokens.push_back(vocabulary.sep_id());
  sequence.first_part = static_cast<int64_t>(sequence.tokens.size());
  if (second) add(*second, kept.second);
  return sequence;
}

EncodedExamples::EncodedExamples(std::span<const Example> examples,
                                 const std::shared_ptr<const text::Vocabulary>& vocabulary,
                                 text::Casing casing, const EncodeOptions& options)
    : sequences_(examples.size()), second_segment_(vocabulary->second_segment()) {
  parallel_for(
      options.threads, static_cast<int64_t>(examples.size()), 16, [&](int64_t begin, int64_t end) {
        text::Tokenizer tokenizer(vocabulary, casing);
        std::vector<int32_t> first, second;
        for (int64_t i = begin; i < end; ++i) {
          const auto index = static_cast<size_t>(i);
          first.clear();
          second.clear();
          tokenizer.encode(examples[index].text, first);
          std::optional<std::span<const int32_t>> pair;
          if (options.has_pairs) {
            tokenizer.encode(examples[index].text_pair, second);
            pair = second;
          }
          sequences_[index] = make_sequence(first, pair, *vocabulary, options.max_sequence_length);
        }
      });
  count();
}

EncodedExamples::EncodedExamples(std::vector<TokenSequence> sequences,
                                 const text::Vocabulary& vocabulary)
    : sequences_(std::move(sequences)), second_segment_(vocabulary.second_segment()) {
  count();
}

void EncodedExamples::count() {
  lengths_.reserve(sequences_.size());
  for (const TokenSequence& sequence : sequences_) {
    lengths_.push_back(static_cast<int32_t>(sequence.tokens.size()));
    cut_ += sequence.is_cut ? 1 : 0;
  }
}

int64_t EncodedExamples::longest() const {
  return lengths_.empty() ? 0 : *std::max_element(lengths_.begin(), lengths_.end());
}

void EncodedExamples::append(uint32_t example, uint64_t sample, batches::Batch& batch) const {
  const TokenSequence& sequence = sequences_[example];
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

void warn_of_pairs_without_segments(const training::ModelDescription& model, const Path& folder) {
  if (model.config.segments < 2 || model.vocabulary->has_segments()) return;
  log_warning(
      "{}: both texts of a pair are in segment 0, as in transformers, since key "
      "`model_input_names` has no \"token_type_ids\", nor has its class; if the model was "
      "trained with segments, write \"model_input_names\": [\"input_ids\", \"token_type_ids\", "
      "\"attention_mask\"] into that file",
      (training::find_model_folder(folder) / "tokenizer_config.json").string());
}

}  // namespace onebit::finetune
