#include "onebit/apps/tag/encoded_sentences.h"

#include <algorithm>

#include "onebit/data/text/pipeline.h"
#include "onebit/data/text/tokenizer.h"
#include "onebit/ground/base/error.h"
#include "onebit/ground/base/parallel_for.h"

namespace onebit::tag {
namespace {

constexpr int64_t kSpecialTokens = 2;

}  // namespace

EncodedSentences::EncodedSentences(std::span<const Sentence> sentences,
                                   const std::shared_ptr<const text::Vocabulary>& vocabulary,
                                   text::Casing casing, const EncodeOptions& options)
    : sentences_(sentences.size()), cls_(vocabulary->cls_id()), sep_(vocabulary->sep_id()) {
  require(options.max_sequence_length > kSpecialTokens,
          "a sequence length of {} leaves no room for text: {} tokens are special",
          options.max_sequence_length, kSpecialTokens);
  const auto& pipeline = vocabulary->pipeline();
  require(!pipeline || pipeline->pre_tokenizer.adds_prefix_space().value_or(true),
          "words are tokenized one by one, and this model's tokenizer puts no blank before them: its "
          "tokens would be those that continue a word. Set add_prefix_space to true in the "
          "pre_tokenizer of its tokenizer.json and in tokenizer_config.json, and train with that");
  require(options.stride >= 1, "the stride is {}: it must be at least 1", options.stride);
  const int64_t longest = options.max_sequence_length - kSpecialTokens;
  const auto encode = [&](text::Tokenizer& tokenizer, const Sentence& sentence, Pieces& pieces) {
    pieces.starts.push_back(0);
    for (size_t i = 0; i < sentence.words.size(); ++i) {
      const size_t first = pieces.tokens.size();
      tokenizer.encode(sentence.word(i), pieces.tokens);
      if (pieces.tokens.size() == first) pieces.tokens.push_back(vocabulary->unknown_id());
      if (pieces.tokens.size() - first > static_cast<size_t>(longest)) {
        pieces.tokens.resize(first + static_cast<size_t>(longest));
        ++pieces.cut_words;
      }
      pieces.starts.push_back(static_cast<uint32_t>(pieces.tokens.size()));
    }
  };
  parallel_for(options.threads, static_cast<int64_t>(sentences.size()), 16,
               [&](int64_t begin, int64_t end) {
                 text::Tokenizer tokenizer(vocabulary, casing);
                 for (int64_t i = begin; i < end; ++i) {
                   const auto index = static_cast<size_t>(i);
                   encode(tokenizer, sentences[index], sentences_[index]);
                 }
               });
  for (size_t i = 0; i < sentences_.size(); ++i) {
    const Pieces& pieces = sentences_[i];
    const auto first_word = static_cast<size_t>(words_);
    for (const WordWindow& words : word_windows(pieces.starts, longest, options.stride)) {
      windows_.push_back({static_cast<uint32_t>(i), words, first_word + words.first_owned});
      lengths_.push_back(static_cast<int32_t>(
          kSpecialTokens + pieces.starts[words.first + words.words] - pieces.starts[words.first]));
    }
    words_ += static_cast<int64_t>(pieces.starts.size()) - 1;
    split_ += static_cast<int64_t>(pieces.tokens.size()) > longest ? 1 : 0;
    cut_words_ += pieces.cut_words;
  }
}

int64_t EncodedSentences::longest() const {
  return lengths_.empty() ? 0 : *std::max_element(lengths_.begin(), lengths_.end());
}

int64_t EncodedSentences::most_owned() const {
  uint32_t most = 0;
  for (const Window& window : windows_) most = std::max(most, window.words.owned);
  return most;
}

void EncodedSentences::append(uint32_t window, uint64_t sample, batches::Batch& batch) const {
  const WordWindow& words = windows_[window].words;
  const Pieces& pieces = sentences_[windows_[window].sentence];
  const int64_t first_row = batch.rows();
  const uint32_t begin = pieces.starts[words.first], end = pieces.starts[words.first + words.words];
  batch.tokens.push_back(cls_);
  batch.tokens.insert(batch.tokens.end(), pieces.tokens.begin() + begin,
                      pieces.tokens.begin() + end);
  batch.tokens.push_back(sep_);
  batch.segments.resize(batch.tokens.size(), 0);
  batch.end_sequence(first_row, sample);
  for (uint32_t word = words.first_owned; word < words.first_owned + words.owned; ++word) {
    const int64_t row = first_row + 1 + pieces.starts[word] - begin;
    batch.labelled_rows.push_back(static_cast<int32_t>(row));
  }
}

}  // namespace onebit::tag
