// The tokenizer's files of a Hugging Face folder: vocab.txt, tokenizer_config.json,
// special_tokens_map.json, and tokenizer.json, which repeats all of it for programs that read only
// that and is used if the others are absent.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "onebit/base/file.h"
#include "onebit/base/json_fwd.h"
#include "onebit/text/casing.h"

namespace onebit::formats {

// tokenizer_config.json of a BertTokenizer.
struct TokenizerConfigFile {
  bool lower_case = true;
  std::optional<bool> strip_accents;  // absent: as lower_case
  bool tokenize_chinese_chars = true;
  int64_t model_max_length = 512;
  std::string unk_token = "[UNK]", sep_token = "[SEP]", pad_token = "[PAD]", cls_token = "[CLS]",
              mask_token = "[MASK]";

  bool operator==(const TokenizerConfigFile&) const = default;
};

// Reads vocab.txt (text/vocabulary.h), or the vocabulary of tokenizer.json. Errors: neither exists;
// a token twice or empty; ids with a gap.
std::vector<std::string> read_vocabulary(const Path& folder);

// tokenizer.json's WordPiece vocabulary. Error: another kind of tokenizer; ids with a gap.
std::vector<std::string> parse_word_piece_vocabulary(const Json& json, const std::string& place);
// Empty if the file does not specify whether text is lower-cased. Error: another kind of tokenizer.
std::optional<TokenizerConfigFile> parse_tokenizer_config(const Json& json,
                                                          const std::string& place);
std::optional<TokenizerConfigFile> parse_tokenizer_json(const Json& json, const std::string& place);

// Reads one of these files: tokenizer.json if the ending is .json, else a vocab.txt.
std::vector<std::string> read_vocabulary_file(const Path& path);

// Reads tokenizer_config.json, or the same from tokenizer.json; empty if neither exists or neither
// specifies whether text is lower-cased. Errors: they disagree; another kind of tokenizer.
std::optional<TokenizerConfigFile> read_tokenizer_config(const Path& folder);

// The casing with which onebit's tokenizer treats text as `config` specifies; `place` is the folder
// or file. Error: its tokenizer cannot.
text::Casing casing_of(const TokenizerConfigFile& config, const std::string& place);

std::string tokenizer_config_text(const TokenizerConfigFile& config);
std::string special_tokens_map_text(const TokenizerConfigFile& config);
// Equal to transformers' output for this vocabulary and config (BertTokenizerFast), byte for byte.
std::string tokenizer_json_text(const std::vector<std::string>& vocabulary,
                                const TokenizerConfigFile& config);

}  // namespace onebit::formats
