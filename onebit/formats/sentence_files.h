// The files by which sentence-transformers knows what is made of a BERT's hidden states:
// modules.json, 1_Pooling/config.json, 2_Normalize, sentence_bert_config.json,
// config_sentence_transformers.json. They stand in a model folder beside transformers' own.
#pragma once

#include <cstdint>
#include <optional>

#include "onebit/base/file.h"

namespace onebit::formats {

enum class SentencePooling {
  kMean,   // "pooling_mode_mean_tokens"
  kFirst,  // "pooling_mode_cls_token"
};

struct SentenceFiles {
  SentencePooling pooling = SentencePooling::kMean;
  bool normalize = true;            // vectors are given length 1
  int64_t max_sequence_length = 0;  // tokens, special ones included; 0: not given

  bool operator==(const SentenceFiles&) const = default;
};

// The folders among them.
inline constexpr const char* kPoolingFolder = "1_Pooling";
inline constexpr const char* kNormalizeFolder = "2_Normalize";

// Absent where the folder has no modules.json. Errors: a file is missing or damaged; a module that
// is none of Transformer, Pooling and Normalize; another pooling, or several together; prompts that
// are put before every text; text that is lower-cased before a cased tokenizer sees it.
std::optional<SentenceFiles> read_sentence_files(const Path& folder);

// Into an existing folder; vectors have `hidden` numbers.
void write_sentence_files(const Path& folder, const SentenceFiles& files, int64_t hidden);

}  // namespace onebit::formats
