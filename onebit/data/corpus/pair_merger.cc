#include "onebit/data/corpus/pair_merger.h"

#include <string_view>
#include <utility>

namespace onebit::corpus {

PairMerger::PairMerger(std::vector<std::string> symbols, uint64_t least_count,
                       std::string continuing_prefix)
    : symbols_(std::move(symbols)),
      least_count_(static_cast<int64_t>(least_count)),
      continuing_prefix_(std::move(continuing_prefix)) {
  for (size_t i = 0; i < symbols_.size(); ++i) {
    symbol_ids_.emplace(symbols_[i], static_cast<int32_t>(i));
  }
}

void PairMerger::add_word(std::span<const int32_t> symbols, uint64_t count) {
  words_.push_back({text_.size(), static_cast<uint32_t>(symbols.size()), count});
  text_.insert(text_.end(), symbols.begin(), symbols.end());
}

std::vector<std::string> PairMerger::run(size_t most_symbols) {
  count_pairs();
  while (symbols_.size() < most_symbols && !queue_.empty()) {
    const Candidate best = queue_.top();
    queue_.pop();
    const int64_t count = pairs_.at(best.pair).count;
    if (count < best.count) {
      // The pair has lost occurrences since it was queued. (Pairs with gains are queued again at
      // once.)
      if (count >= least_count_) queue_.push({count, best.pair});
    } else if (count == best.count) {
      join(best.pair);
      queue_changed();
    }
  }
  return symbols_;
}

void PairMerger::count_pairs() {
  for (uint32_t w = 0; w < words_.size(); ++w) {
    const int32_t* symbols = text_.data() + words_[w].begin;
    for (uint32_t i = 0; i + 1 < words_[w].size; ++i) add_pair(symbols[i], symbols[i + 1], w);
  }
  queue_changed();
}

int32_t PairMerger::joined_symbol(int32_t left, int32_t right) {
  std::string_view tail = symbols_[right];
  if (tail.starts_with(continuing_prefix_)) tail.remove_prefix(continuing_prefix_.size());
  const auto [place, is_new] = symbol_ids_.emplace(symbols_[left] + std::string(tail),
                                                   static_cast<int32_t>(symbols_.size()));
  if (is_new) symbols_.push_back(place->first);
  return place->second;
}

void PairMerger::join(uint64_t pair) {
  const int32_t left = static_cast<int32_t>(pair >> 32);
  const int32_t right = static_cast<int32_t>(pair & 0xFFFFFFFFu);
  const int32_t joined = joined_symbol(left, right);
  merges_.emplace_back(left, right);
  const std::vector<uint32_t> words = std::exchange(pairs_.at(pair).words, {});
  for (const uint32_t word : words) join_in_word(word, left, right, joined);
}

void PairMerger::join_in_word(uint32_t word, int32_t left, int32_t right, int32_t joined) {
  int32_t* symbols = text_.data() + words_[word].begin;
  const uint32_t size = words_[word].size;
  uint32_t out = 0;
  for (uint32_t i = 0; i < size; ++i) {
    if (i + 1 == size || symbols[i] != left || symbols[i + 1] != right) {
      symbols[out++] = symbols[i];
      continue;
    }
    if (out > 0) {
      remove_pair(symbols[out - 1], left, word);
      add_pair(symbols[out - 1], joined, word);
    }
    remove_pair(left, right, word);
    if (i + 2 < size) {
      remove_pair(right, symbols[i + 2], word);
      add_pair(joined, symbols[i + 2], word);
    }
    symbols[out++] = joined;
    ++i;
  }
  words_[word].size = out;
}

void PairMerger::add_pair(int32_t left, int32_t right, uint32_t word) {
  const uint64_t pair = key(left, right);
  PairCount& info = pairs_[pair];
  info.count += static_cast<int64_t>(words_[word].count);
  if (info.words.empty() || info.words.back() != word) info.words.push_back(word);
  if (!info.changed) {
    info.changed = true;
    changed_.push_back(pair);
  }
}

void PairMerger::remove_pair(int32_t left, int32_t right, uint32_t word) {
  pairs_.at(key(left, right)).count -= static_cast<int64_t>(words_[word].count);
}

void PairMerger::queue_changed() {
  for (const uint64_t pair : changed_) {
    PairCount& info = pairs_.at(pair);
    info.changed = false;
    if (info.count >= least_count_) queue_.push({info.count, pair});
  }
  changed_.clear();
}

}  // namespace onebit::corpus
