// The rate of everything that reads text, in megabytes per second on one thread.
//
// ONEBIT_BENCH_TEXT names a text file and ONEBIT_BENCH_VOCAB a vocab.txt. Without them the text is
// synthetic (words with Zipf's frequencies) and the vocabulary is trained on it.
#include <benchmark/benchmark.h>

#include <cmath>
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include "onebit/data/corpus/vocabulary_trainer.h"
#include "onebit/data/text/sentence_splitter.h"
#include "onebit/data/text/tokenizer.h"
#include "onebit/data/text/utf8.h"
#include "onebit/ground/base/file.h"
#include "onebit/ground/base/philox.h"

namespace {

using namespace onebit;
using namespace onebit::text;

// The word of a rank: a few letters, fewer for frequent words.
std::string made_up_word(uint32_t rank) {
  RandomSequence letters(1, 2, rank);
  const uint32_t size = 1 + static_cast<uint32_t>(std::log2(rank + 2)) / 2 + letters.below(5);
  std::string word;
  for (uint32_t i = 0; i < size; ++i) word.push_back(static_cast<char>('a' + letters.below(26)));
  return word;
}

std::string made_up_text() {
  RandomSequence ranks(1, 3, 0);
  std::string text;
  while (text.size() < 20'000'000) {
    text += made_up_word(static_cast<uint32_t>(std::pow(100'000.0, ranks.uniform())));
    const uint32_t end = ranks.below(80);
    text += end < 4 ? ". " : end < 8 ? ", " : end < 15 ? "\n" : " ";
  }
  return text;
}

const std::string& bench_text() {
  static const std::string text = [] {
    const char* path = std::getenv("ONEBIT_BENCH_TEXT");
    return path == nullptr ? made_up_text() : read_file(path);
  }();
  return text;
}

std::shared_ptr<const Vocabulary> bench_vocabulary() {
  static const auto vocabulary = [] {
    if (const char* path = std::getenv("ONEBIT_BENCH_VOCAB")) {
      return std::make_shared<const Vocabulary>(Vocabulary::load(path));
    }
    corpus::VocabularyTrainer trainer(Casing::kUncased);
    trainer.add_text(bench_text());
    return std::make_shared<const Vocabulary>(
        Vocabulary::from_tokens(trainer.train(30522, 1), "trained vocabulary"));
  }();
  return vocabulary;
}

std::vector<std::string_view> lines(std::string_view text) {
  std::vector<std::string_view> result;
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size());
    result.push_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return result;
}

void count_bytes(benchmark::State& state) {
  state.SetBytesProcessed(state.iterations() * static_cast<int64_t>(bench_text().size()));
}

// Tokenizes line by line. A cold cache is a new tokenizer in every iteration.
template <bool kWarm>
void tokenize(benchmark::State& state) {
  const std::vector<std::string_view> input = lines(bench_text());
  const Tokenizer fresh(bench_vocabulary(), Casing::kUncased);
  Tokenizer warm(fresh);
  std::vector<int32_t> ids;
  size_t tokens = 0;
  const auto encode = [&](Tokenizer& tokenizer) {
    tokens = 0;
    for (const std::string_view line : input) {
      ids.clear();
      tokenizer.encode(line, ids);
      tokens += ids.size();
    }
  };
  encode(warm);
  for (auto _ : state) {
    Tokenizer cold(fresh);
    encode(kWarm ? warm : cold);
    benchmark::DoNotOptimize(tokens);
  }
  state.counters["tokens"] = static_cast<double>(tokens);
  count_bytes(state);
}
BENCHMARK(tokenize<false>)->Name("tokenize/cold")->Unit(benchmark::kMillisecond);
BENCHMARK(tokenize<true>)->Name("tokenize/warm")->Unit(benchmark::kMillisecond);

void tokenize_with_offsets(benchmark::State& state) {
  const std::vector<std::string_view> input = lines(bench_text());
  Tokenizer tokenizer(bench_vocabulary(), Casing::kUncased);
  std::vector<Piece> pieces;
  for (auto _ : state) {
    for (const std::string_view line : input) {
      pieces.clear();
      tokenizer.encode_with_offsets(line, pieces);
      benchmark::DoNotOptimize(pieces.data());
    }
  }
  count_bytes(state);
}
BENCHMARK(tokenize_with_offsets)->Unit(benchmark::kMillisecond);

void split_sentences(benchmark::State& state) {
  SentenceSplitter splitter;
  for (auto _ : state) benchmark::DoNotOptimize(splitter.split(bench_text()));
  count_bytes(state);
}
BENCHMARK(split_sentences)->Unit(benchmark::kMillisecond);

void validate_utf8(benchmark::State& state) {
  for (auto _ : state) benchmark::DoNotOptimize(first_invalid_utf8(bench_text()));
  count_bytes(state);
}
BENCHMARK(validate_utf8)->Unit(benchmark::kMillisecond);

void train_vocabulary(benchmark::State& state) {
  for (auto _ : state) {
    corpus::VocabularyTrainer trainer(Casing::kUncased);
    trainer.add_text(bench_text());
    benchmark::DoNotOptimize(trainer.train(30522, 1));
  }
  count_bytes(state);
}
BENCHMARK(train_vocabulary)->Unit(benchmark::kMillisecond);

}  // namespace

BENCHMARK_MAIN();
