#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "onebit/data/corpus/prepare.h"
#include "onebit/data/corpus/token_store.h"
#include "onebit/data/corpus/vocabulary_choice.h"
#include "onebit/data/samples/import.h"
#include "onebit/data/text/casing.h"
#include "onebit/ground/base/error.h"
#include "onebit/ground/base/log.h"
#include "onebit/ground/base/printable.h"
#include "onebit/ground/metrics/human.h"
#include "onebit/ground/metrics/text_table.h"
#include "onebit/program/cli/command_list.h"
#include "onebit/training/commands/device_option.h"
#include "onebit/training/commands/usage.h"
#include "onebit/training/finetune/model_vocabulary.h"
#include "onebit/training/training/interruption.h"

namespace onebit::cli {
namespace {

// `onebit prepare --from hdf5|tfrecord`: converts third-party examples to a sample store.
struct SampleArguments {
  std::vector<std::string> inputs;
  samples::SampleFormat format = samples::SampleFormat::kHdf5;
  std::string output;
  std::string vocabulary;  // value of --vocab
  std::optional<text::Casing> casing;
  bool overwrite = false;
};

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

// Runs the command and returns the exit status.
int prepare_samples(const SampleArguments& given) {
  corpus::PrepareOptions text;
  finetune::take_vocabulary(given.vocabulary, text);
  text.casing = given.casing;
  const corpus::ChosenVocabulary chosen = corpus::choose_vocabulary(text, {}, {});
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

struct Arguments {
  std::vector<std::string> inputs;
  std::string output, vocabulary, from = "text", format = "auto", locale = "en";
  std::string vocabulary_kind = "wordpiece";
  int32_t vocabulary_size = 0;
  int threads = 0;
  bool overwrite = false, cased = false, uncased = false, drop_duplicates = false;
  bool skips_bad_records = false;
};

void show_progress(const corpus::PrepareProgress& progress) {
  std::string line =
      fmt::format("{}: {:.1f} MB of text, {:.1f} MB/s", progress.phase,
                  static_cast<double>(progress.text_bytes) / 1e6, progress.megabytes_per_second);
  if (progress.seconds_left >= 0) line += fmt::format(", {:.0f} s left", progress.seconds_left);
  if (isatty(STDERR_FILENO) != 0) {
    show(fmt::format("\r{}\033[K", line));
  } else {
    log_info("{}", line);
  }
}

std::optional<text::Casing> casing_of(const Arguments& given) {
  if (given.cased) return text::Casing::kCased;
  if (given.uncased) return text::Casing::kUncased;
  return std::nullopt;
}

corpus::PrepareOptions to_options(const Arguments& given) {
  corpus::PrepareOptions options;
  for (const auto& input : given.inputs) options.inputs.emplace_back(input);
  options.output = given.output;
  if (given.vocabulary_size > 0) options.vocabulary_size = given.vocabulary_size;
  if (given.vocabulary.empty() == !options.vocabulary_size.has_value()) {
    throw commands::UsageError(
        "give either --vocab-size (a vocabulary is learned from the text) or --vocab (a vocab.txt, "
        "or a model's folder)");
  }
  if (!given.vocabulary.empty() && given.vocabulary_kind != "wordpiece") {
    throw commands::UsageError("--vocab-type is for --vocab-size, and --vocab was given");
  }
  options.vocabulary_kind = corpus::vocabulary_kind_from_name(given.vocabulary_kind);
  options.casing = casing_of(given);
  options.format = corpus::text_format_from_name(given.format);
  options.locale = given.locale;
  options.threads = given.threads;
  options.overwrite = given.overwrite;
  options.drop_duplicates = given.drop_duplicates;
  if (given.skips_bad_records) options.left_out = corpus::LeftOut::kBad;
  return options;
}

// Options about the reading of text do not apply to examples.
int run_samples(const Arguments& given) {
  if (given.vocabulary.empty()) {
    throw commands::UsageError(fmt::format(
        "--from {}: give --vocab, the vocabulary that the files were written with (a vocab.txt, or "
        "a model's folder)",
        given.from));
  }
  const std::pair<bool, const char*> of_text[] = {
      {given.vocabulary_size > 0, "--vocab-size"},
      {given.vocabulary_kind != "wordpiece", "--vocab-type"},
      {given.format != "auto", "--format"},
      {given.locale != "en", "--locale"},
      {given.drop_duplicates, "--drop-duplicates"},
      {given.skips_bad_records, "--skip-bad-records"}};
  for (const auto& [is_given, option] : of_text) {
    if (is_given) throw commands::UsageError(fmt::format("{} is for --from text", option));
  }
  return prepare_samples({.inputs = given.inputs,
                          .format = given.from == "hdf5" ? samples::SampleFormat::kHdf5
                                                         : samples::SampleFormat::kTfRecord,
                          .output = given.output,
                          .vocabulary = given.vocabulary,
                          .casing = casing_of(given),
                          .overwrite = given.overwrite});
}

void report_unknown(const corpus::UnknownWords& unknown) {
  if (unknown.unknown_tokens == 0) return;
  const std::string what = fmt::format(
      "{:.{}f} % of the tokens are [UNK], which stands for words that the vocabulary "
      "lacks; the first is {}",
      100 * unknown.share(), unknown.share() < 1e-3 ? 4 : 1, quote(unknown.first));
  if (unknown.share() < corpus::kManyUnknown) {
    log_info("{}", what);
  } else {
    log_warning(
        "{}: the vocabulary is probably of another language or writing, and a model learns nothing "
        "from these words; --vocab-size learns a vocabulary from this text",
        what);
  }
}

int run(const Arguments& given) {
  if (given.from != "text") return run_samples(given);
  corpus::PrepareOptions options = to_options(given);
  if (!given.vocabulary.empty()) finetune::take_vocabulary(given.vocabulary, options);
  // Signals are handled only during tokenizing, which polls for them. While the vocabulary is
  // learned, a signal ends the process at once.
  std::optional<training::Interruption> interruption;
  options.progress = [&](const corpus::PrepareProgress& progress) {
    if (progress.phase == "tokenizing" && !interruption) interruption.emplace();
    require(!interruption || !interruption->asked(), "{}: interrupted: nothing was written",
            given.output);
    show_progress(progress);
  };
  const corpus::PrepareReport report = corpus::prepare(options);
  if (isatty(STDERR_FILENO) != 0) show("\r\033[K");
  for (const auto& decision : report.decisions) log_info("{}", decision);
  const auto& manifest = report.manifest;
  fmt::print(
      "{}: {} documents, {} sentences, {} tokens, vocabulary {}; {:.1f} MB of text in "
      "{:.1f} s ({:.1f} MB/s tokenizing)\n",
      given.output, manifest.documents, manifest.sentences, manifest.tokens,
      manifest.vocabulary_size, static_cast<double>(manifest.text_bytes) / 1e6, report.seconds,
      report.megabytes_per_second);
  if (report.long_sentence_tokens > 0) {
    log_info(
        "{:.1f} % of the tokens are in sentences of more than {}: sentences longer than a sequence "
        "are read in pieces",
        100 * static_cast<double>(report.long_sentence_tokens) /
            static_cast<double>(manifest.tokens),
        corpus::kLongSentenceTokens);
  }
  report_unknown(report.unknown);
  if (given.drop_duplicates) {
    fmt::print("{} documents were duplicates and dropped: {} tokens\n",
               manifest.duplicate_documents.value_or(0), report.duplicate_tokens);
  }
  return 0;
}

}  // namespace

void add_prepare(commands::Command program, commands::Action& chosen) {
  auto given = std::make_shared<Arguments>();
  const commands::Command command = program.add_subcommand(
      "prepare", "Turn text, or examples of other programs, into a store to train from");
  command
      .add_option("--input,-i", given->inputs,
                  "Files or folders of .txt or .jsonl, also .gz, .xz, .zst, .bz2 or .lz4 of them, "
                  "or - for standard input. With --from: files, folders or patterns of examples")
      .required();
  command
      .add_option("--from", given->from,
                  "text; or hdf5 (shards of NVIDIA's BERT) or tfrecord (examples of Google's "
                  "create_pretraining_data.py), whose pairs and masks are kept as they are")
      .check(commands::one_of({"text", "hdf5", "tfrecord"}))
      .capture_default_str();
  command.add_option("--output,-o", given->output, "Folder of the store to create").required();
  command
      .add_option("--vocab-size", given->vocabulary_size,
                  "Learn a vocabulary of this size from the text, e.g. 30522")
      .check(commands::at_least(1));
  command
      .add_option(
          "--vocab-type", given->vocabulary_kind,
          "With --vocab-size: wordpiece (BERT), unigram (XLM-R) or bpe, byte pairs (RoBERTa, "
          "ModernBERT)")
      .check(commands::one_of({"wordpiece", "unigram", "bpe"}))
      .capture_default_str();
  command.add_option(
      "--vocab", given->vocabulary,
      "Use this vocab.txt, or vocabulary and casing of this model folder, run, store or "
      "tokenizer.json. With --from, give the vocabulary that the examples were written with");
  const commands::Option cased =
      command.add_flag("--cased", given->cased, "Keep capitals and accents");
  command
      .add_flag("--uncased", given->uncased,
                "Lower-case and strip accents (the default of wordpiece, but with --vocab as the "
                "model does, or as the words of the vocab.txt are)")
      .excludes(cased);
  command
      .add_option("--format", given->format,
                  "lines (one sentence per line, blank line between documents), prose (to be split "
                  "into sentences, one document per file), documents (the same, blank line between "
                  "documents), jsonl (one document per line in \"text\"), or auto: lines or prose, "
                  "for each file")
      .check(commands::one_of({"auto", "lines", "prose", "documents", "jsonl"}))
      .capture_default_str();
  command.add_option("--locale", given->locale, "Language of sentence splitting")
      .capture_default_str();
  command.add_option("--threads", given->threads, "0: all processors")
      .check(commands::whole_between(0, commands::kMaxThreads))
      .capture_default_str();
  command.add_flag("--drop-duplicates", given->drop_duplicates,
                   "Keep the first of documents that are equal token for token");
  command.add_flag("--skip-bad-records", given->skips_bad_records,
                   "Leave out JSON lines that cannot be read, and count them. Without this option "
                   "each is an error");
  command.add_flag("--overwrite", given->overwrite, "Replace a finished store");
  command.callback([given, &chosen] { chosen = [given] { return run(*given); }; });
}

}  // namespace onebit::cli
