#include "onebit/data/corpus/store_statistics.h"

#include <algorithm>
#include <bit>

namespace onebit::corpus {

void LengthCounter::add(uint64_t length) {
  if (length < short_.size()) {
    ++short_[length];
  } else {
    ++long_[length];
  }
  ++count_;
  sum_ += length;
}

LengthStatistics LengthCounter::statistics() const {
  LengthStatistics found;
  found.mean = static_cast<double>(sum_) / static_cast<double>(count_);
  uint64_t before = 0;
  const auto take = [&](uint64_t length, uint64_t count) {
    if (count == 0) return;
    const auto bin = static_cast<size_t>(std::bit_width(length) - 1);
    found.histogram.resize(std::max(found.histogram.size(), bin + 1));
    found.histogram[bin] += count;
    if (before < (count_ + 1) / 2) found.median = length;
    before += count;
    found.longest = length;
  };
  for (uint64_t length = 0; length < short_.size(); ++length) take(length, short_[length]);
  for (const auto& [length, count] : long_) take(length, count);
  return found;
}

namespace {

constexpr uint64_t kTokensAtOnce = uint64_t{1} << 20;

uint64_t count_of(const TokenStore& store, int32_t id) {
  std::vector<int32_t> ids(std::min(kTokensAtOnce, store.tokens()));
  uint64_t count = 0;
  for (uint64_t first = 0; first < store.tokens(); first += ids.size()) {
    const uint64_t here = std::min<uint64_t>(ids.size(), store.tokens() - first);
    store.copy_tokens(first, here, ids.data());
    count += static_cast<uint64_t>(
        std::count(ids.begin(), ids.begin() + static_cast<ptrdiff_t>(here), id));
  }
  return count;
}

}  // namespace

StoreStatistics statistics_of(const TokenStore& store) {
  LengthCounter sentence_tokens, document_tokens, document_sentences;
  uint64_t long_sentence_tokens = 0;
  for (uint64_t sentence = 0; sentence < store.sentences(); ++sentence) {
    const uint64_t size = store.sentence_begin(sentence + 1) - store.sentence_begin(sentence);
    sentence_tokens.add(size);
    long_sentence_tokens += long_tokens(size);
  }
  for (uint64_t document = 0; document < store.documents(); ++document) {
    const uint64_t begin = store.document_begin(document), end = store.document_begin(document + 1);
    document_tokens.add(store.sentence_begin(end) - store.sentence_begin(begin));
    document_sentences.add(end - begin);
  }
  return {.unknown_tokens = count_of(store, store.vocabulary()->unknown_id()),
          .long_sentence_tokens = long_sentence_tokens,
          .sentence_tokens = sentence_tokens.statistics(),
          .document_tokens = document_tokens.statistics(),
          .document_sentences = document_sentences.statistics()};
}

}  // namespace onebit::corpus
