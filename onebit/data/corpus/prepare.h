// Converts text to a token store, on all cores. Memory does not depend on the size of the text.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "onebit/data/corpus/left_out_records.h"
#include "onebit/data/corpus/store_manifest.h"
#include "onebit/data/corpus/text_source.h"
#include "onebit/data/corpus/tokenizer_trainer.h"
#include "onebit/data/text/casing.h"
#include "onebit/data/text/vocabulary.h"
#include "onebit/ground/base/clock.h"
#include "onebit/ground/base/file.h"

namespace onebit::corpus {

// The options of `onebit prepare`.

// Computes speed and remaining time from the bytes done, about once a second.
struct PrepareProgress {
  std::string phase;                // "learning the vocabulary" or "tokenizing"
  uint64_t done_bytes = 0;          // of total_bytes, as sizes on disk
  uint64_t total_bytes = 0;         // 0 when unknown (standard input)
  uint64_t text_bytes = 0;          // uncompressed text so far
  double seconds = 0;               // since the phase began
  double megabytes_per_second = 0;  // of text, 10^6 bytes
  double seconds_left = -1;         // -1 when unknown
};

class ProgressMeter {
 public:
  using Report = std::function<void(const PrepareProgress&)>;
  // `report` may be empty.
  ProgressMeter(std::string phase, uint64_t total_bytes, Report report)
      : phase_(std::move(phase)), total_bytes_(total_bytes), report_(std::move(report)) {}

  void update(uint64_t done_bytes, uint64_t text_bytes) {
    if (!report_ || since_report_.seconds() < 1) return;
    since_report_.restart();
    send(done_bytes, text_bytes);
  }
  void finish(uint64_t done_bytes, uint64_t text_bytes) {
    if (report_) send(done_bytes, text_bytes);
  }
  double seconds() const { return since_start_.seconds(); }

 private:
  void send(uint64_t done_bytes, uint64_t text_bytes) {
    PrepareProgress progress{.phase = phase_,
                             .done_bytes = done_bytes,
                             .total_bytes = total_bytes_,
                             .text_bytes = text_bytes,
                             .seconds = since_start_.seconds()};
    const double seconds = progress.seconds > 0 ? progress.seconds : 1e-9;
    progress.megabytes_per_second = static_cast<double>(text_bytes) * 1e-6 / seconds;
    if (total_bytes_ > 0 && done_bytes > 0) {
      const double left =
          total_bytes_ > done_bytes ? static_cast<double>(total_bytes_ - done_bytes) : 0;
      progress.seconds_left = seconds * left / static_cast<double>(done_bytes);
    }
    report_(progress);
  }

  std::string phase_;
  uint64_t total_bytes_;
  Report report_;
  Stopwatch since_start_, since_report_;
};

// The vocabulary of a model or of another store.
struct ModelVocabulary {
  std::shared_ptr<const text::Vocabulary> tokens;
  std::optional<text::Casing> casing;  // of the text that it is meant for, if known
  std::string place;                   // for messages
};

struct PrepareOptions {
  std::vector<Path> inputs;  // files, folders, or "-" for standard input
  Path output;
  // Exactly one of these three is set.
  std::optional<Path> vocabulary;  // vocab.txt
  std::optional<ModelVocabulary> model_vocabulary;
  std::optional<int32_t> vocabulary_size;  // of a vocabulary to be learned from the text
  VocabularyKind vocabulary_kind = VocabularyKind::kWordPiece;  // of that one
  // Absent: the model's, or for a vocab.txt cased if its tokens contain capitals, or for a
  // vocabulary to be learned uncased if it is WordPiece and cased if it is another kind.
  std::optional<text::Casing> casing;
  TextFormat format = TextFormat::kAuto;
  std::string locale = "en";             // for sentence splitting
  int threads = 0;                       // 0: all processors
  bool overwrite = false;                // replace a finished store
  bool drop_duplicates = false;          // keep only the first of documents with equal tokens
  LeftOut left_out = LeftOut::kMissing;  // of the records of JSON lines
  std::function<void(const PrepareProgress&)> progress;  // called about once a second
};

// What the vocabulary has no tokens for.
struct UnknownWords {
  uint64_t tokens = 0, unknown_tokens = 0;  // all, and those that are [UNK]
  std::string first;                        // the first text that became [UNK]

  double share() const {
    return static_cast<double>(unknown_tokens) / static_cast<double>(std::max(tokens, uint64_t{1}));
  }
  void add(UnknownWords other) {
    tokens += other.tokens;
    unknown_tokens += other.unknown_tokens;
    if (first.empty()) first = std::move(other.first);
  }
};

// From this share of [UNK] on, a vocabulary is probably meant for other text: the vocabulary of a
// language has a token for all but one in some thousand words of that language.
inline constexpr double kManyUnknown = 0.01;

struct PrepareReport {
  StoreManifest manifest;
  std::vector<std::string> decisions;  // automatic choices, to be shown to the user
  uint64_t duplicate_tokens = 0;       // in documents dropped as duplicates
  uint64_t long_sentence_tokens = 0;   // in sentences of more than kLongSentenceTokens
  UnknownWords unknown;                // of the text, duplicates included
  double seconds = 0;
  double megabytes_per_second = 0;  // text bytes per second of the tokenizing phase
};

// Writes to `<output>.partial`, renamed to `output` when everything is on disk: an interrupted run
// leaves nothing that looks finished. Errors (which leave nothing behind): missing, empty or
// damaged input, text that is not UTF-8 (path and byte offset), an invalid JSON line (path and
// line), no sentence in the whole input, a vocabulary without special tokens or of another casing,
// an existing output.
PrepareReport prepare(const PrepareOptions& options);

}  // namespace onebit::corpus
