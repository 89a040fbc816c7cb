#include "onebit/data/corpus/prepare.h"

#include <algorithm>
#include <memory>
#include <set>
#include <utility>

#include "onebit/data/corpus/input_files.h"
#include "onebit/data/corpus/ordered_pipeline.h"
#include "onebit/data/corpus/sentence_reader.h"
#include "onebit/data/corpus/store_writer.h"
#include "onebit/data/corpus/text_lines.h"
#include "onebit/data/corpus/text_source.h"
#include "onebit/data/corpus/vocabulary_choice.h"
#include "onebit/data/text/tokenizer.h"
#include "onebit/ground/base/error.h"
#include "onebit/ground/base/log.h"
#include "onebit/ground/base/parallel_for.h"
#include "onebit/ground/base/wording.h"

namespace onebit::corpus {

namespace {

struct Tokenized {
  TokenizedBlock block;
  uint64_t text_bytes = 0;
  uint64_t consumed_bytes = 0;
  LeftOutRecords left_out;
  UnknownWords unknown;
};

// Whether the tokens of a word tell if a blank stands before it. Many tokenizers add a blank to a
// text that has none.
bool hears_blanks(text::Tokenizer tokenizer) {
  std::vector<int32_t> bare, after_blank;
  tokenizer.encode("a", bare);
  tokenizer.encode(" a", after_blank);
  return bare != after_blank;
}

// The objects of one thread.
struct Worker {
  text::Tokenizer tokenizer;
  SentenceReader reader;
  LeftOut rule;
  bool is_word_piece;
  // A sentence that follows another one keeps the blank between them, as in running text.
  bool keeps_blanks;
  std::vector<int32_t> ids = {};
  std::string running = {};
  UnknownWords unknown = {};

  void encode(std::string_view sentence, bool is_first) {
    ids.clear();
    if (!is_word_piece) sentence = in_running_text(sentence, is_first);
    tokenizer.encode(sentence, ids);
    count_unknown(sentence);
  }

  void count_unknown(std::string_view sentence) {
    const int32_t id = tokenizer.vocabulary().unknown_id();
    const auto count = static_cast<uint64_t>(std::count(ids.begin(), ids.end(), id));
    unknown.tokens += ids.size();
    unknown.unknown_tokens += count;
    if (count == 0 || !unknown.first.empty()) return;
    std::vector<text::Piece> pieces;
    tokenizer.encode_with_offsets(sentence, pieces);
    const auto found = std::find_if(pieces.begin(), pieces.end(),
                                    [&](const text::Piece& piece) { return piece.id == id; });
    if (found == pieces.end()) return;
    unknown.first = sentence.substr(found->begin, found->end - found->begin);
  }

  // The end of a line is a blank: where lines of a paragraph end says nothing about the text.
  std::string_view in_running_text(std::string_view sentence, bool is_first) {
    const bool has_blank = keeps_blanks && !is_first;
    if (!has_blank && sentence.find('\n') == std::string_view::npos) return sentence;
    running.assign(has_blank ? 1 : 0, ' ');
    while (true) {
      const size_t end = sentence.find('\n');
      running += stripped(sentence.substr(0, end));
      if (end == std::string_view::npos) return running;
      sentence.remove_prefix(end + 1);
      running += ' ';
    }
  }

  Tokenized tokenize(TextBlock& block, int token_size_bytes) {
    if (block.format != TextFormat::kJsonl || rule != LeftOut::kBad) check_utf8(block);
    Tokenized result{.block = {token_size_bytes, block.text.size()},
                     .text_bytes = block.text.size()};
    // Whether a later block continues a document is not known here. Most do.
    bool is_first = block.offset_bytes == 0;
    reader.read(block, {.sentence =
                            [&](std::string_view sentence) {
                              encode(sentence, is_first);
                              result.block.add_sentence(ids);
                              is_first = false;
                            },
                        .document_end =
                            [&] {
                              result.block.end_document();
                              is_first = true;
                            }});
    result.block.close();
    result.left_out = reader.take_left_out();
    result.unknown = std::exchange(unknown, {});
    return result;
  }
};

struct Totals {
  uint64_t text_bytes = 0;
  std::set<std::string> formats;
  std::string decision, empty_files;
  LeftOutRecords left_out;
  UnknownWords unknown;
  double seconds = 0;
};

// The input of a worker: a block, and the number of bytes consumed after reading it.
struct Item {
  TextBlock block;
  uint64_t consumed_bytes = 0;
};

Totals tokenize_all(const PrepareOptions& options, const std::vector<InputFile>& files,
                    const ChosenVocabulary& vocabulary, StoreWriter& writer) {
  std::vector<Worker> workers;
  const text::Tokenizer tokenizer(vocabulary.vocabulary, vocabulary.casing);
  const bool is_word_piece = !vocabulary.vocabulary->pipeline();
  const bool keeps_blanks = hears_blanks(tokenizer);
  for (int i = 0; i < options.threads; ++i) {
    workers.push_back({tokenizer, SentenceReader(options.locale, options.left_out),
                       options.left_out, is_word_piece, keeps_blanks});
  }
  TextSource source(files, options.format);
  ProgressMeter meter("tokenizing", source.total_bytes(), options.progress);
  Totals totals;
  uint64_t consumed_bytes = 0;
  OrderedPipeline<Item, Tokenized>(options.threads)
      .run(
          [&](Item& item) {
            if (!source.read(item.block)) return false;
            item.consumed_bytes = source.consumed_bytes();
            const bool is_blank = stripped(item.block.text).empty();
            if (!is_blank) totals.formats.insert(name(item.block.format));
            return true;
          },
          [&](int thread, Item& item) {
            Tokenized result = workers[thread].tokenize(item.block, writer.token_size_bytes());
            result.consumed_bytes = item.consumed_bytes;
            return result;
          },
          [&](Tokenized& result) {
            writer.add(result.block);
            totals.text_bytes += result.text_bytes;
            totals.left_out.add(result.left_out);
            totals.unknown.add(std::move(result.unknown));
            consumed_bytes = result.consumed_bytes;
            meter.update(consumed_bytes, totals.text_bytes);
          });
  meter.finish(consumed_bytes, totals.text_bytes);
  totals.decision = source.decision();
  totals.empty_files = source.empty_files();
  totals.seconds = meter.seconds();
  return totals;
}

void check_options(const PrepareOptions& options) {
  const int given = (options.vocabulary ? 1 : 0) + (options.model_vocabulary ? 1 : 0) +
                    (options.vocabulary_size ? 1 : 0);
  require(given == 1,
          "specify either a vocabulary (--vocab vocab.txt or a model's folder) or the size of one "
          "to learn from the text (--vocab-size 30522)");
  require(options.threads >= 0, "threads is {}: it must be 0 (all) or more", options.threads);
}

std::vector<std::string> names_of(const std::vector<InputFile>& files) {
  std::vector<std::string> names;
  for (const InputFile& file : files) names.push_back(file.name);
  return names;
}

}  // namespace

PrepareReport prepare(const PrepareOptions& given) {
  const Stopwatch watch;
  check_options(given);
  PrepareOptions options = given;
  if (options.threads == 0) options.threads = available_threads();
  PrepareReport report;
  InputFiles inputs = find_input_files(options.inputs);
  for (std::string& note : notes_of(inputs)) report.decisions.push_back(std::move(note));
  refuse_inputs_in(options.output, inputs.files);
  StoreWriter writer(options.output, options.overwrite);
  if (options.drop_duplicates) writer.drop_duplicates();
  if (options.vocabulary_size) keep_streams(inputs.files, writer.partial_folder());
  const ChosenVocabulary vocabulary =
      choose_vocabulary(options, inputs.files, writer.partial_folder());
  report.decisions.insert(report.decisions.end(), vocabulary.decisions.begin(),
                          vocabulary.decisions.end());
  writer.set_vocabulary(*vocabulary.vocabulary, vocabulary.casing);
  const Totals totals = tokenize_all(options, inputs.files, vocabulary, writer);
  for (std::string note : {totals.decision, totals.empty_files, totals.left_out.summary()}) {
    if (!note.empty()) report.decisions.push_back(std::move(note));
  }
  drop_kept_streams(writer.partial_folder());
  require(writer.has_sentences() || totals.left_out.count() == 0, "no sentence was found: {}",
          totals.left_out.summary());
  const std::string format = fmt::format("{}", fmt::join(totals.formats, " + "));
  report.manifest = writer.finish(totals.text_bytes, format, names_of(inputs.files));
  report.duplicate_tokens = writer.duplicate_tokens();
  report.long_sentence_tokens = writer.long_sentence_tokens();
  report.unknown = totals.unknown;
  report.seconds = watch.seconds();
  report.megabytes_per_second =
      static_cast<double>(totals.text_bytes) * 1e-6 / std::max(totals.seconds, 1e-9);
  return report;
}

}  // namespace onebit::corpus
