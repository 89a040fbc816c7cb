// Files of vectors, written one after the other: their number is not known before the last.
#pragma once

#include <cstdint>
#include <span>

#include "onebit/base/partial_file.h"

namespace onebit::embed {

enum class VectorFormat {
  kNumpy,        // .npy: f32 [texts, numbers], version 1.0
  kSafetensors,  // one tensor "embeddings", F32 [texts, numbers]
  kJsonLines,    // {"embedding": [...]} a line, with the digits that give the f32 back
};

// By the ending: .npy, .safetensors or .jsonl. Error: another one.
VectorFormat vector_format_of(const Path& path);

class VectorFile {
 public:
  // Of vectors with `numbers` numbers. Nothing is at `path` before finish(), or what was there
  // before.
  VectorFile(const Path& path, VectorFormat format, int64_t numbers);

  void add(std::span<const float> vector);
  void finish();
  int64_t count() const { return count_; }

 private:
  // Of the vectors so far; as long as any.
  std::string header() const;

  VectorFormat format_;
  int64_t numbers_;
  PartialFile file_;
  int64_t count_ = 0;
};

}  // namespace onebit::embed
