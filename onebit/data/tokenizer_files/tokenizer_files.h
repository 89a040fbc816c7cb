// The tokenizer of a Hugging Face folder, which is in up to five files: vocab.txt,
// added_tokens.json, tokenizer_config.json, special_tokens_map.json, and tokenizer.json, which
// repeats all of it for programs that read only that.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "onebit/data/text/casing.h"
#include "onebit/data/text/vocabulary.h"
#include "onebit/ground/base/file.h"

namespace onebit::formats {

inline constexpr const char* kVocabTxt = "vocab.txt";
inline constexpr const char* kAddedTokensJson = "added_tokens.json";
inline constexpr const char* kTokenizerConfigJson = "tokenizer_config.json";
inline constexpr const char* kSpecialTokensMapJson = "special_tokens_map.json";
inline constexpr const char* kTokenizerJson = "tokenizer.json";
inline constexpr const char* kChatTemplate = "chat_template.jinja";

// How a BertTokenizer treats text.
struct TokenizerConfigFile {
  bool lower_case = true;
  std::optional<bool> strip_accents;  // absent: as lower_case
  bool tokenize_chinese_chars = true;
  int64_t model_max_length = 512;

  bool operator==(const TokenizerConfigFile&) const = default;
};

struct TokenizerFiles {
  text::VocabularyParts vocabulary;
  // Absent if no file specifies whether text is lower-cased.
  std::optional<TokenizerConfigFile> config;
};

// Reads all of them. Errors, with the file and its member: neither vocab.txt nor tokenizer.json
// exists, files that disagree, whatever onebit's tokenizer does not follow, an unknown member.
TokenizerFiles read_tokenizer(const Path& folder);
// The same, where `vocabulary` takes the place of vocab.txt, or of tokenizer.json if its ending is
// .json, among the files of its folder.
TokenizerFiles read_tokenizer_with(const Path& vocabulary);
// Reads one file of that kind alone.
TokenizerFiles read_tokenizer_alone(const Path& vocabulary);

// The casing with which onebit's tokenizer treats text as `config` specifies. `place` is the folder
// or file. Error: its tokenizer cannot.
text::Casing casing_of(const TokenizerConfigFile& config, const std::string& place);

// A file's name and content.
struct TextFile {
  std::string name, text;
};
// The files from which transformers and `tokenizers` get the same ids. tokenizer.json equals
// transformers' output (BertTokenizerFast), byte for byte.
std::vector<TextFile> tokenizer_files(const TokenizerFiles& tokenizer);

}  // namespace onebit::formats
