// An index of passages: a folder with their texts and vectors, in files that other programs read.
//
//   index.json       how the vectors were made, and their number
//   passages.jsonl   {"file": ..., "line": ..., "text": ...}, one passage per line
//   vectors.npy      [passages, numbers], of length 1: f32, or i8 with scales.npy
//   scales.npy       f32 [passages, 1]: a vector is its whole numbers times its scale
//
// A query is compared with every vector (exact inner products), so nothing is missed.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "onebit/apps/embed/vector_file.h"
#include "onebit/ground/base/file.h"
#include "onebit/ground/base/json.h"
#include "onebit/ground/base/partial_file.h"
#include "onebit/program/search/passage_reader.h"

namespace onebit::search {

enum class VectorType { kF32, kInt8 };

// What index.json holds.
struct IndexDescription {
  std::string model;  // its path when the index was made
  VectorType type = VectorType::kF32;
  int64_t passages = 0, numbers = 0;
  // Settings of embed::Encoder with which the passages were encoded.
  int64_t max_sequence_length = 0;
  std::string pooling, prompt;  // formats::words_of(), and the text of the prompt
  // The vector of kProbe, which tells another model from the index's.
  std::vector<float> probe;
};
inline constexpr const char* kProbe = "The quick brown fox jumps over the lazy dog.";

class IndexWriter {
 public:
  // Errors: as for PartialFolder, and a folder that has something else than an index in it, or an
  // index that is not to be overwritten.
  IndexWriter(const Path& folder, bool overwrite, IndexDescription description);

  // `unit` has length 1.
  void add(const Passage& passage, std::span<const float> unit);
  int64_t count() const { return description_.passages; }
  // Error: no passage was added.
  void finish();

 private:
  PartialFolder folder_;
  IndexDescription description_;
  FileWriter passages_;
  embed::VectorFile vectors_;
  std::optional<embed::VectorFile> scales_;
};

struct Found {
  int64_t passage;  // its row
  float cosine;
};

class Index {
 public:
  // Errors: not an index, one that is damaged (a file's size, a header) or of a later version.
  explicit Index(const Path& folder);

  const IndexDescription& description() const { return description_; }
  std::vector<Path> files() const;
  // The `most` passages whose vectors are nearest to `unit` [numbers], the nearest first. Of equals
  // the one that comes first in the index.
  // Errors, here and of vector(): a vector with numbers that are not finite.
  std::vector<Found> nearest(std::span<const float> unit, int64_t most, int threads) const;
  // Error: a damaged line.
  Passage passage(int64_t row) const;
  std::vector<float> vector(int64_t row) const;

 private:
  void find_lines();
  [[noreturn]] void refuse_vector(int64_t row) const;

  Path folder_;
  IndexDescription description_;
  MappedFile vectors_, scales_, passages_;
  std::vector<uint64_t> lines_;  // where the line of each passage begins
};

}  // namespace onebit::search
