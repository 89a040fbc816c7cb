// Files of vectors, written one after the other. Their number is unknown until the last.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "onebit/ground/base/partial_file.h"

namespace onebit::embed {

enum class VectorFormat {
  kNumpy,        // .npy: f32 [texts, numbers], version 1.0
  kNumpyInt8,    // the same of whole numbers from -127 to 127
  kSafetensors,  // one tensor "embeddings", F32 [texts, numbers]
  kJsonLines,    // {"embedding": [...]} per line, with the digits that restore the f32
};

// The format by the file's ending: .npy, .safetensors or .jsonl. Error: another ending.
VectorFormat vector_format_of(const Path& path);

// What precedes the vectors in a file. Its size does not depend on their number.
std::string vector_header(VectorFormat format, int64_t count, int64_t numbers);

class VectorFile {
 public:
  // For vectors of `numbers` numbers. `path` stays absent or unchanged until finish().
  VectorFile(const Path& path, VectorFormat format, int64_t numbers);

  void add(std::span<const float> vector);
  void add(std::span<const int8_t> vector);  // kNumpyInt8 alone
  void finish();
  int64_t count() const { return count_; }

 private:
  VectorFormat format_;
  int64_t numbers_;
  PartialFile file_;
  int64_t count_ = 0;
};

}  // namespace onebit::embed
