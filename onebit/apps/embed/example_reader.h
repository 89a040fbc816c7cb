// Reads a whole file of examples with which vectors of texts are trained or evaluated.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "onebit/data/corpus/text_lines.h"
#include "onebit/training/finetune/example_reader.h"
#include "onebit/training/finetune/record_reader.h"

namespace onebit::embed {

// Selects the columns of a file that contain the texts of an example. They determine its kind.
enum class Kind {
  kPairs,     // anchor, positive: two matching texts
  kTriplets,  // anchor, positive, negative: and one that does not match the anchor
  kScored,    // two texts and their similarity
};
// "pairs", "triplets", "scored pairs".
const char* name_of(Kind kind);
// The texts per example: 2, or 3 for triplets.
int64_t parts_of(Kind kind);

// Columns as ColumnFinder takes them. An empty one is found by its usual names: anchor, query,
// question, sentence1 or text, then positive, answer, sentence2 or text_pair, then negative, if
// present, and score, similarity, scores, label or labels, if present.
struct Columns {
  std::string anchor, positive, negative, score;
  std::optional<bool> header;  // absent: the file has one unless all columns are given by number

  bool has_header() const {
    return finetune::has_header(header, {anchor, positive, negative, score});
  }
};

struct ChosenColumns {
  std::string anchor, positive, negative, score;  // negative and score: at most one of them

  Kind kind() const;
  // In the order of the fields that a reader returns.
  std::vector<std::string> list() const;
};

// Chooses the columns of a file. Errors: no column for the anchor or the positive, or both a
// negative and a score. `fix` ends the message ("give --anchor and --positive").
ChosenColumns choose_columns(finetune::RecordReader& reader, const Columns& columns,
                             const std::string& fix);

// The column of the texts to encode: `given` or, if that is empty, text, sentence or the only one.
// Error: none of them.
std::string choose_text(finetune::RecordReader& reader, const std::string& given);

struct FileLayout {
  std::optional<finetune::FileFormat> format;  // absent: by the file's ending
  Columns columns;
  corpus::LeftOut left_out = corpus::LeftOut::kNothing;
  double score_scale = 1;  // scores are divided by it: the score of texts with the same meaning
};

struct Examples {
  Kind kind = Kind::kPairs;
  // The texts of an example one after the other, in the order of ChosenColumns, without pairs.
  finetune::Examples texts;
  std::vector<float> scores;  // [examples] for scored pairs, else empty

  const std::string& source() const { return texts.source; }
  int64_t parts() const { return parts_of(kind); }
  int64_t size() const { return static_cast<int64_t>(texts.all.size()) / parts(); }
  const std::string& text(int64_t example, int64_t part) const {
    return texts.all[static_cast<size_t>(example * parts() + part)].text;
  }
};

// Errors: as for RecordReader and choose_columns(). With file:line: a text that is not a string, a
// score that is not a number or, divided by score_scale, outside [-1, 1]. A file without examples.
Examples read_examples(const Path& path, const FileLayout& layout);

// A checksum of texts and scores in order: shows whether a run is resumed with the same data.
uint32_t checksum(const Examples& examples);

// Reads texts to be encoded one after the other: memory does not depend on the size of the file.
enum class TextFormat { kLines, kTsv, kCsv, kJsonLines };

struct TextLayout {
  std::optional<TextFormat> format;  // absent: by the file's ending. .txt: a text per line
  std::string column;                // of the text, unless kLines. Empty: by its usual names
  std::optional<bool> header;        // of TSV and CSV. Absent: unless the column is a number
};

class TextReader {
 public:
  // Errors: as for RecordReader and choose_text(), and an ending without a format. A file of lines
  // may be empty.
  TextReader(const Path& path, const TextLayout& layout);

  // Overwrites `text`, and returns false after the last. Errors, with file:line: as for
  // RecordReader, and a text that is not a string.
  bool next(std::string& text);
  const std::string& name() const;

 private:
  std::unique_ptr<corpus::FileLines> lines_;  // either this or records_
  std::unique_ptr<finetune::RecordReader> records_;
  std::string column_;
  std::vector<finetune::Field> fields_;
};

}  // namespace onebit::embed
