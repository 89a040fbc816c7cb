#include "onebit/data/text/vocabulary_trainer.h"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <map>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "onebit/data/text/normal_form.h"
#include "onebit/data/text/utf8.h"
#include "onebit/data/text/vocabulary.h"
#include "onebit/data/text/word_cache.h"
#include "onebit/data/text/word_piece.h"
#include "onebit/data/text/word_scanner.h"
#include "onebit/ground/base/error.h"
#include "onebit/ground/base/parallel_for.h"

namespace onebit::text {

PairMerger::PairMerger(std::vector<std::string> symbols, uint64_t least_count)
    : symbols_(std::move(symbols)), least_count_(static_cast<int64_t>(least_count)) {
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
  if (tail.starts_with("##")) tail.remove_prefix(2);
  const auto [place, is_new] = symbol_ids_.emplace(symbols_[left] + std::string(tail),
                                                   static_cast<int32_t>(symbols_.size()));
  if (is_new) symbols_.push_back(place->first);
  return place->second;
}

void PairMerger::join(uint64_t pair) {
  const int32_t left = static_cast<int32_t>(pair >> 32);
  const int32_t right = static_cast<int32_t>(pair & 0xFFFFFFFFu);
  const int32_t joined = joined_symbol(left, right);
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
  Pair& info = pairs_[pair];
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
    Pair& info = pairs_.at(pair);
    info.changed = false;
    if (info.count >= least_count_) queue_.push({info.count, pair});
  }
  changed_.clear();
}

namespace {

// Occurrences of each word: an open-addressing table over an arena of bytes.
class WordCounts {
 public:
  WordCounts();

  // `hash` is any deterministic function of the word.
  void add(std::string_view word, uint64_t hash, uint64_t times = 1);
  void add(const WordCounts& other);
  size_t size() const { return places_.size(); }
  // In the order in which words were first added; i < size().
  std::string_view word(size_t i) const {
    return {arena_.data() + places_[i].offset, places_[i].size_bytes};
  }
  uint64_t count(size_t i) const { return places_[i].count; }

 private:
  struct Place {
    uint64_t hash, offset, count;
    uint32_t size_bytes;
  };

  void grow();

  std::vector<Place> places_;
  std::vector<uint32_t> slots_;  // index + 1, or 0
  std::string arena_;
};

WordCounts::WordCounts() : slots_(size_t{1} << 12) {}

void WordCounts::add(std::string_view word, uint64_t hash, uint64_t times) {
  const size_t mask = slots_.size() - 1;
  size_t i = (hash >> 8) & mask;
  for (; slots_[i] != 0; i = (i + 1) & mask) {
    Place& place = places_[slots_[i] - 1];
    if (place.hash == hash && this->word(slots_[i] - 1) == word) {
      place.count += times;
      return;
    }
  }
  require(places_.size() < std::numeric_limits<uint32_t>::max() - 1,
          "more than {} different words: train the vocabulary on a part of the text",
          places_.size());
  places_.push_back({hash, arena_.size(), times, static_cast<uint32_t>(word.size())});
  arena_.append(word);
  slots_[i] = static_cast<uint32_t>(places_.size());
  if (2 * places_.size() > slots_.size()) grow();
}

void WordCounts::add(const WordCounts& other) {
  for (size_t i = 0; i < other.size(); ++i) {
    add(other.word(i), other.places_[i].hash, other.count(i));
  }
}

void WordCounts::grow() {
  slots_.assign(2 * slots_.size(), 0);
  const size_t mask = slots_.size() - 1;
  for (size_t p = 0; p < places_.size(); ++p) {
    size_t i = (places_[p].hash >> 8) & mask;
    while (slots_[i] != 0) i = (i + 1) & mask;
    slots_[i] = static_cast<uint32_t>(p + 1);
  }
}

// Hugging Face's choices for BERT.
constexpr size_t kMaxCharacters = 1000;
constexpr uint64_t kMinCount = 2;

class CountVisitor {
 public:
  explicit CountVisitor(WordCounts& counts) : counts_(counts) {}

  void short_word(const char* begin, size_t size, ShortWord word) {
    counts_.add({begin, size}, hash_short_word(word.low, word.high));
  }
  void word(std::string_view raw) { counts_.add(raw, hash_word(raw)); }
  void single(std::string_view raw) { word(raw); }
  size_t punctuation(const char* at, const char* end) {
    const std::string_view special = special_token_at({at, static_cast<size_t>(end - at)});
    if (!special.empty()) return special.size();
    word({at, 1});
    return 1;
  }

 private:
  WordCounts& counts_;
};

using CountedWord = std::pair<std::u32string, uint64_t>;

std::u32string code_points(std::string_view utf8) {
  std::u32string result;
  while (!utf8.empty()) {
    const DecodedCharacter c = decode_utf8(utf8);
    result.push_back(c.code_point);
    utf8.remove_prefix(c.size_bytes);
  }
  return result;
}

// The distinct normalised words in ascending order, without words that WordPiece does not accept.
std::vector<CountedWord> normalized(const WordCounts& raw, const Characters& characters,
                                    int threads) {
  std::vector<CountedWord> words(raw.size());
  parallel_for(threads, static_cast<int64_t>(raw.size()), 4096, [&](int64_t begin, int64_t end) {
    NormalizedWord word;
    for (size_t i = static_cast<size_t>(begin); i < static_cast<size_t>(end); ++i) {
      word.assign(raw.word(i), characters);
      if (word.characters() <= kMaxWordCharacters) {
        words[i] = {code_points(word.text()), raw.count(i)};
      }
    }
  });
  std::erase_if(words, [](const CountedWord& word) { return word.first.empty(); });
  std::sort(words.begin(), words.end());
  size_t kept = 0;
  for (size_t i = 0; i < words.size(); ++i) {
    if (kept > 0 && words[kept - 1].first == words[i].first) {
      words[kept - 1].second += words[i].second;
    } else if (kept++ != i) {
      words[kept - 1] = std::move(words[i]);
    }
  }
  words.resize(kept);
  return words;
}

// The most frequent characters in ascending order.
std::u32string alphabet(const std::vector<CountedWord>& words) {
  std::map<char32_t, uint64_t> counts;
  for (const auto& [word, count] : words) {
    for (const char32_t c : word) counts[c] += count;
  }
  std::vector<std::pair<char32_t, uint64_t>> sorted(counts.begin(), counts.end());
  std::stable_sort(sorted.begin(), sorted.end(),
                   [](const auto& a, const auto& b) { return a.second > b.second; });
  sorted.resize(std::min(sorted.size(), kMaxCharacters));
  std::u32string result;
  for (const auto& entry : sorted) result.push_back(entry.first);
  std::sort(result.begin(), result.end());
  return result;
}

bool is_spelled_with(std::u32string_view word, const std::u32string& letters) {
  return std::all_of(word.begin(), word.end(), [&](char32_t c) {
    return std::binary_search(letters.begin(), letters.end(), c);
  });
}

// Special tokens and characters, and the positions of the characters among them.
struct FirstSymbols {
  std::vector<std::string> symbols;
  std::unordered_map<char32_t, int32_t> first, continuing;
};

FirstSymbols first_symbols(const std::vector<CountedWord>& words, const std::u32string& letters) {
  FirstSymbols result;
  result.symbols.assign(kSpecialTokens.begin(), kSpecialTokens.end());
  const auto add = [&](std::string symbol, char32_t c,
                       std::unordered_map<char32_t, int32_t>& numbers) {
    append_utf8(c, symbol);
    numbers[c] = static_cast<int32_t>(result.symbols.size());
    result.symbols.push_back(std::move(symbol));
  };
  for (const char32_t c : letters) add("", c, result.first);
  std::u32string continuing;
  for (const auto& entry : words) continuing.append(entry.first, 1);
  std::sort(continuing.begin(), continuing.end());
  continuing.erase(std::unique(continuing.begin(), continuing.end()), continuing.end());
  for (const char32_t c : continuing) add("##", c, result.continuing);
  return result;
}

}  // namespace

class VocabularyTrainer::Body {
 public:
  explicit Body(Casing casing) : characters(Characters::get(casing)) {}

  const Characters& characters;
  WordCounts counts;
};

VocabularyTrainer::VocabularyTrainer(Casing casing) : body_(std::make_unique<Body>(casing)) {}
VocabularyTrainer::~VocabularyTrainer() = default;
VocabularyTrainer::VocabularyTrainer(VocabularyTrainer&&) noexcept = default;
VocabularyTrainer& VocabularyTrainer::operator=(VocabularyTrainer&&) noexcept = default;

void VocabularyTrainer::add_text(std::string_view utf8) {
  CountVisitor visitor(body_->counts);
  scan_words(utf8, body_->characters, visitor);
}

void VocabularyTrainer::merge(const VocabularyTrainer& other) {
  require(other.body_->characters.casing() == body_->characters.casing(),
          "a cased and an uncased vocabulary cannot be trained together");
  body_->counts.add(other.body_->counts);
}

std::vector<std::string> VocabularyTrainer::train(int32_t vocab_size, int threads) const {
  std::vector<CountedWord> words = normalized(body_->counts, body_->characters, threads);
  require(!words.empty(), "no words to train a vocabulary on: the text is empty");
  const std::u32string letters = alphabet(words);
  std::erase_if(words, [&](const CountedWord& w) { return !is_spelled_with(w.first, letters); });
  FirstSymbols start = first_symbols(words, letters);
  require(static_cast<int64_t>(start.symbols.size()) <= vocab_size,
          "vocabulary size {} is too small for the special tokens and the {} characters of the "
          "text; use at least {}",
          vocab_size, letters.size(), start.symbols.size());

  PairMerger merger(std::move(start.symbols), kMinCount);
  std::vector<int32_t> symbols;
  for (const auto& [word, count] : words) {
    symbols.clear();
    for (const char32_t c : word) {
      symbols.push_back(symbols.empty() ? start.first.at(c) : start.continuing.at(c));
    }
    merger.add_word(symbols, count);
  }
  return merger.run(static_cast<size_t>(vocab_size));
}

}  // namespace onebit::text
