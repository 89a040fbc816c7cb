// Selects the columns of a file that contain the texts of an example; they determine its kind.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "onebit/training/finetune/columns.h"

namespace onebit::embed {

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
// question, sentence1 or text; positive, answer, sentence2 or text_pair; negative, if present;
// score or similarity, if present.
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

// Chooses the columns of a file. Errors: no column for the anchor or the positive; both a negative
// and a score. `fix` ends the message ("give --anchor and --positive").
ChosenColumns choose_columns(finetune::RecordReader& reader, const Columns& columns,
                             const std::string& fix);

// The column of the texts to encode: `given` or, if that is empty, text, sentence or the only one.
// Error: none of them.
std::string choose_text(finetune::RecordReader& reader, const std::string& given);

}  // namespace onebit::embed
