#include "onebit/program/cli/prepare_samples.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>

#include "onebit/data/corpus/vocabulary_choice.h"
#include "onebit/data/samples/import.h"
#include "onebit/ground/base/error.h"
#include "onebit/ground/base/log.h"
#include "onebit/ground/metrics/human.h"
#include "onebit/ground/metrics/text_table.h"
#include "onebit/program/cli/vocabulary_option.h"
#include "onebit/training/training/interruption.h"

namespace onebit::cli {
namespace {

void show_progress(const samples::ImportProgress& progress) {
  const bool terminal = isatty(STDERR_FILENO) != 0;
  std::string line = fmt::format("reading examples: {} of {}, {} examples",
                                 metrics::human_bytes(static_cast<double>(progress.done_bytes)),
                                 metrics::human_bytes(static_cast<double>(progress.total_bytes)),
                                 progress.samples);
  if (progress.seconds_left >= 0) line += fmt::format(", {:.0f} s left", progress.seconds_left);
  if (terminal) {
    show(fmt::format("\r{}\033[K", line));
  } else {
    log_info("{}", line);
  }
}

std::string share(uint64_t part, uint64_t all) {
  if (all == 0) return "none";
  return fmt::format("{:.1f} %", 100 * static_cast<double>(part) / static_cast<double>(all));
}

void print_summary(const std::string& output, const samples::ImportReport& report) {
  const samples::SampleManifest& manifest = report.manifest;
  const double samples = static_cast<double>(manifest.samples);
  metrics::TextTable table;
  table.add_title(fmt::format("{}: a sample store", output));
  table.add_row(
      {"files", fmt::format("{} ({}, {})", manifest.source_count, manifest.format,
                            metrics::human_bytes(static_cast<double>(report.file_bytes)))});
  table.add_row({"examples", fmt::format("{}", manifest.samples)});
  table.add_row({"tokens", fmt::format("{}; {:.1f} per example, {} at most", manifest.tokens,
                                       static_cast<double>(manifest.tokens) / samples,
                                       manifest.longest_tokens)});
  table.add_row(
      {"masked words", fmt::format("{}; {:.1f} per example, {} at most, {} of the tokens",
                                   manifest.masked, static_cast<double>(manifest.masked) / samples,
                                   manifest.most_masked, share(manifest.masked, manifest.tokens))});
  table.add_row({"replaced by [MASK]", share(manifest.replaced_by_mask, manifest.masked)});
  table.add_row({"pairs", share(manifest.pairs, manifest.samples)});
  table.add_row({"random second text", share(manifest.random_next, manifest.labels)});
  table.add_row({"time", fmt::format("{:.1f} s, {:.0f} examples/s", report.seconds,
                                     samples / std::max(report.seconds, 1e-9))});
  fmt::print("{}", table.text());
}

}  // namespace

int prepare_samples(const SampleArguments& given) {
  corpus::PrepareOptions text;
  take_vocabulary(given.vocabulary, text);
  text.casing = given.casing;
  const corpus::ChosenVocabulary chosen = corpus::choose_vocabulary(text, {});
  for (const auto& decision : chosen.decisions) log_info("{}", decision);
  samples::ImportOptions options;
  options.inputs.assign(given.inputs.begin(), given.inputs.end());
  options.format = given.format;
  options.output = given.output;
  options.vocabulary = chosen.vocabulary;
  options.vocabulary_place = given.vocabulary;
  options.casing = chosen.casing;
  options.overwrite = given.overwrite;
  const training::Interruption interruption;
  options.progress = [&](const samples::ImportProgress& progress) {
    require(!interruption.asked(), "{}: interrupted: nothing was written", given.output);
    show_progress(progress);
  };
  const samples::ImportReport report = samples::import_samples(options);
  if (isatty(STDERR_FILENO) != 0) show("\r\033[K");
  for (const auto& decision : report.decisions) log_info("{}", decision);
  print_summary(given.output, report);
  return 0;
}

}  // namespace onebit::cli
