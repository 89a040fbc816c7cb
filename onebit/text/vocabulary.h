// A WordPiece vocabulary: the list of tokens whose positions are the ids, one token per line in a
// BERT model's vocab.txt.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "onebit/base/file.h"

namespace onebit::text {

struct TokenHash {
  using is_transparent = void;
  size_t operator()(std::string_view text) const { return std::hash<std::string_view>{}(text); }
};
using TokenIds = std::unordered_map<std::string, int32_t, TokenHash, std::equal_to<>>;

// The position of each token. Errors, with the line in `source`: no tokens, an empty one, a
// duplicate, bytes that are not UTF-8.
TokenIds token_ids(const std::vector<std::string>& tokens, const std::string& source);

// Returns the tokens of a vocab.txt in order; carriage returns, blanks and tabs at the end of a
// line are removed. Errors: no file; those of token_ids().
std::vector<std::string> read_vocabulary_lines(const Path& vocab_txt);
// Returns the content of such a file.
std::string vocabulary_text(const std::vector<std::string>& tokens);

class Vocabulary {
 public:
  // One token per line, line number = id. Errors, each with the path and the line or the token:
  // those of read_vocabulary_lines(); no [UNK], [CLS], [SEP], [MASK] or [PAD].
  static Vocabulary load(const Path& vocab_txt);
  // Performs the same checks; errors name `source`.
  static Vocabulary from_tokens(std::vector<std::string> tokens, const std::string& source);

  int32_t size() const { return static_cast<int32_t>(tokens_.size()); }
  const std::string& token(int32_t id) const { return tokens_[static_cast<size_t>(id)]; }
  // The id of exactly this token, including "##".
  std::optional<int32_t> find(std::string_view token) const;

  int32_t unknown_id() const { return unknown_id_; }
  int32_t cls_id() const { return cls_id_; }
  int32_t sep_id() const { return sep_id_; }
  int32_t mask_id() const { return mask_id_; }
  int32_t pad_id() const { return pad_id_; }

  // Whether the token starts with "##" and so continues a word.
  bool is_continuation(int32_t id) const { return token(id).starts_with("##"); }
  // A checksum of the tokens in order (FNV-1a): stores and checkpoints record it to detect a
  // different vocabulary.
  uint32_t checksum() const { return checksum_; }
  // Writes vocab.txt atomically.
  void save(const Path& vocab_txt) const;

 private:
  std::vector<std::string> tokens_;
  TokenIds ids_;
  int32_t unknown_id_ = 0, cls_id_ = 0, sep_id_ = 0, mask_id_ = 0, pad_id_ = 0;
  uint32_t checksum_ = 0;
};

}  // namespace onebit::text
