// Reads a whole file of examples with which vectors of texts are trained or evaluated.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "onebit/apps/embed/text_columns.h"
#include "onebit/training/finetune/example_reader.h"

namespace onebit::embed {

struct FileLayout {
  std::optional<finetune::FileFormat> format;  // absent: by the file's ending
  Columns columns;
  corpus::LeftOut left_out = corpus::LeftOut::kNothing;
  double score_scale = 1;  // scores are divided by it: the score of texts with the same meaning
};

struct Examples {
  Kind kind = Kind::kPairs;
  // The texts of an example one after the other, in the order of ChosenColumns; without pairs.
  finetune::Examples texts;
  std::vector<float> scores;  // [examples] for scored pairs, else empty

  const std::string& source() const { return texts.source; }
  int64_t parts() const { return parts_of(kind); }
  int64_t size() const { return static_cast<int64_t>(texts.all.size()) / parts(); }
  const std::string& text(int64_t example, int64_t part) const {
    return texts.all[static_cast<size_t>(example * parts() + part)].text;
  }
};

// Errors: those of RecordReader and choose_columns(); with file:line a text that is not a string, a
// score that is not a number or, divided by score_scale, outside [-1, 1]; a file without examples.
Examples read_examples(const Path& path, const FileLayout& layout);

// A checksum of texts and scores in order: shows whether a run is resumed with the same data.
uint32_t checksum(const Examples& examples);

}  // namespace onebit::embed
