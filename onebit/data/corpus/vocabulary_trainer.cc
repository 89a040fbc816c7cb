#include "onebit/data/corpus/vocabulary_trainer.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "onebit/data/corpus/pair_merger.h"
#include "onebit/data/corpus/word_counts.h"
#include "onebit/data/text/normal_form.h"
#include "onebit/data/text/utf8.h"
#include "onebit/data/text/vocabulary.h"
#include "onebit/data/text/word_cache.h"
#include "onebit/data/text/word_piece.h"
#include "onebit/data/text/word_scanner.h"
#include "onebit/ground/base/error.h"
#include "onebit/ground/base/parallel_for.h"

namespace onebit::corpus {

namespace {

// Hugging Face's choices for BERT.
constexpr size_t kMaxCharacters = 1000;
constexpr uint64_t kMinCount = 2;

class CountVisitor {
 public:
  explicit CountVisitor(WordCounts& counts) : counts_(counts) {}

  void short_word(const char* begin, size_t size, text::ShortWord word) {
    counts_.add({begin, size}, text::hash_short_word(word.low, word.high));
  }
  void word(std::string_view raw) { counts_.add(raw, text::hash_word(raw)); }
  void single(std::string_view raw) { word(raw); }
  size_t punctuation(const char* at, const char* end) {
    const std::string_view special = text::special_token_at({at, static_cast<size_t>(end - at)});
    if (!special.empty()) return special.size();
    word({at, 1});
    return 1;
  }

 private:
  WordCounts& counts_;
};

using CountedWord = std::pair<std::u32string, uint64_t>;

// The distinct normalised words in ascending order, without words that WordPiece does not accept.
std::vector<CountedWord> normalized(const WordCounts& raw, const text::Characters& characters,
                                    int threads) {
  std::vector<CountedWord> words(raw.size());
  parallel_for(threads, static_cast<int64_t>(raw.size()), 4096, [&](int64_t begin, int64_t end) {
    text::NormalizedWord word;
    for (size_t i = static_cast<size_t>(begin); i < static_cast<size_t>(end); ++i) {
      word.assign(raw.word(i), characters);
      if (word.characters() <= text::kMaxWordCharacters) {
        words[i] = {text::code_points(word.text()), raw.count(i)};
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
  result.symbols.assign(text::kSpecialTokens.begin(), text::kSpecialTokens.end());
  const auto add = [&](std::string symbol, char32_t c,
                       std::unordered_map<char32_t, int32_t>& numbers) {
    text::append_utf8(c, symbol);
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
  explicit Body(text::Casing casing) : characters(text::Characters::get(casing)) {}

  const text::Characters& characters;
  WordCounts counts;
};

VocabularyTrainer::VocabularyTrainer(text::Casing casing) : body_(std::make_unique<Body>(casing)) {}
VocabularyTrainer::~VocabularyTrainer() = default;
VocabularyTrainer::VocabularyTrainer(VocabularyTrainer&&) noexcept = default;
VocabularyTrainer& VocabularyTrainer::operator=(VocabularyTrainer&&) noexcept = default;

void VocabularyTrainer::add_text(std::string_view utf8) {
  CountVisitor visitor(body_->counts);
  text::scan_words(utf8, body_->characters, visitor);
}

void VocabularyTrainer::merge(const VocabularyTrainer& other) {
  require(other.body_->characters.casing() == body_->characters.casing(),
          "a cased and an uncased vocabulary cannot be trained together");
  body_->counts.add(other.body_->counts);
}

std::vector<std::string> VocabularyTrainer::train(int32_t vocab_size, int threads) const {
  std::vector<CountedWord> words = normalized(body_->counts, body_->characters, threads);
  require(!words.empty() || body_->counts.size() == 0,
          "no words to train a vocabulary on: each word of the text is longer than {} characters, "
          "which is [UNK] in a WordPiece tokenizer; where a script has no spaces, learn another "
          "kind with --vocab-type unigram",
          text::kMaxWordCharacters);
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

}  // namespace onebit::corpus
