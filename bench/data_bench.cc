// The rate at which text is prepared into a token store, and a store is read into batches.
//   ONEBIT_BENCH_TEXT=folder ONEBIT_BENCH_VOCAB=vocab.txt data_bench
// The folder contains plain text.
#include <benchmark/benchmark.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <memory>
#include <string>

#include "onebit/data/batches/batch_stream.h"
#include "onebit/data/batches/example_source.h"
#include "onebit/data/corpus/prepare.h"
#include "onebit/data/corpus/token_store.h"
#include "onebit/ground/base/error.h"
#include "onebit/ground/base/parallel_for.h"

namespace {

using namespace onebit;
using namespace onebit::corpus;
using namespace onebit::batches;

Path scratch() {
  return std::filesystem::temp_directory_path() / fmt::format("onebit-data-bench-{}", ::getpid());
}

PrepareOptions prepare_options(int threads) {
  const char* folder = std::getenv("ONEBIT_BENCH_TEXT");
  const char* vocabulary = std::getenv("ONEBIT_BENCH_VOCAB");
  require(folder != nullptr && vocabulary != nullptr,
          "set ONEBIT_BENCH_TEXT to a folder of text and ONEBIT_BENCH_VOCAB to a vocab.txt");
  PrepareOptions options;
  options.inputs = {folder};
  options.output = scratch();
  options.vocabulary = vocabulary;
  options.threads = threads;
  options.overwrite = true;
  return options;
}

std::shared_ptr<const TokenStore> store() {
  static const std::shared_ptr<const TokenStore> made = [] {
    prepare(prepare_options(available_threads()));
    return std::make_shared<const TokenStore>(scratch());
  }();
  return made;
}

void prepare_store(benchmark::State& state) {
  const auto threads = static_cast<int>(state.range(0));
  PrepareOptions options = prepare_options(threads);
  options.format = state.range(1) == 0 ? TextFormat::kLines : TextFormat::kProse;
  options.output += "-prepare";
  uint64_t text_bytes = 0;
  const std::clock_t start = std::clock();
  for (auto _ : state) text_bytes += prepare(options).manifest.text_bytes;
  // Processor time of all threads, which other load on the machine does not distort.
  const double seconds = static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC;
  state.counters["MB/core_second"] = static_cast<double>(text_bytes) * 1e-6 / seconds;
  std::filesystem::remove_all(options.output);
}
BENCHMARK(prepare_store)
    ->ArgNames({"threads", "prose"})
    ->ArgsProduct({{1, 2}, {0, 1}})
    ->UseRealTime()
    ->Unit(benchmark::kMillisecond);

void build_batch(benchmark::State& state) {
  BatchStreamOptions options{.micro_batch = 32};
  options.pairs.sequence_length = state.range(0);
  options.masks.max_predictions = state.range(0) >= 512 ? 80 : 20;
  options.masks.whole_words = state.range(1) != 0;
  BatchStream stream({{store()}}, options);
  Batch batch;
  batch.reserve(stream.bounds());
  uint64_t sample = 0;
  int64_t rows = 0;
  for (auto _ : state) {
    stream.build(sample, 0, batch);
    sample += stream.samples_per_step();
    rows += batch.rows();
  }
  state.counters["examples/s"] =
      benchmark::Counter(static_cast<double>(sample), benchmark::Counter::kIsRate);
  state.counters["tokens/s"] =
      benchmark::Counter(static_cast<double>(rows), benchmark::Counter::kIsRate);
}
BENCHMARK(build_batch)->ArgNames({"length", "whole_words"})->ArgsProduct({{128, 512}, {0, 1}});

void index_epoch(benchmark::State& state) {
  const auto data = store();
  uint64_t examples = 0, epoch = 0;
  for (auto _ : state) {
    const PairWalkOptions options{.pairs = {}, .epoch_seed = ++epoch};
    examples += EpochIndex(*data, options, 1).examples();
  }
  state.counters["examples/s"] =
      benchmark::Counter(static_cast<double>(examples), benchmark::Counter::kIsRate);
}
BENCHMARK(index_epoch)->Unit(benchmark::kMillisecond);

}  // namespace

int main(int argc, char** argv) {
  benchmark::Initialize(&argc, argv);
  try {
    benchmark::RunSpecifiedBenchmarks();
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
  std::filesystem::remove_all(scratch());
  return 0;
}
