// The files that tell sentence-transformers how to compute vectors from a BERT's hidden states:
// modules.json, 1_Pooling/config.json, 2_Normalize, sentence_bert_config.json,
// config_sentence_transformers.json. They are in a model folder beside transformers' own.
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
  bool normalize = true;            // vectors are scaled to length 1
  int64_t max_sequence_length = 0;  // tokens, special ones included; 0: not given

  bool operator==(const SentenceFiles&) const = default;
};

// The folders among them.
inline constexpr const char* kPoolingFolder = "1_Pooling";
inline constexpr const char* kNormalizeFolder = "2_Normalize";

// Absent if the folder has no modules.json. Errors: a file is missing or damaged; a module other
// than Transformer, Pooling and Normalize; another pooling, or several together; prompts that
// precede every text; text that is lower-cased before a cased tokenizer gets it.
std::optional<SentenceFiles> read_sentence_files(const Path& folder);

// Writes into an existing folder; vectors have `hidden` numbers.
void write_sentence_files(const Path& folder, const SentenceFiles& files, int64_t hidden);

}  // namespace onebit::formats
