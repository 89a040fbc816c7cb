// A tokenizer's vocabulary: the tokens of the WordPiece model, whose positions are the ids, one per
// line of a BERT model's vocab.txt; and the tokens that were added to it.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "onebit/data/text/added_token.h"
#include "onebit/data/text/special_tokens.h"
#include "onebit/ground/base/file.h"

namespace onebit::text {

struct TokenHash {
  using is_transparent = void;
  size_t operator()(std::string_view text) const { return std::hash<std::string_view>{}(text); }
};
using TokenIds = std::unordered_map<std::string, int32_t, TokenHash, std::equal_to<>>;

// The position of each token, of a repeated one the last, as transformers has it. Errors, with the
// line in `source`: no tokens, bytes that are not UTF-8, a byte order mark.
TokenIds token_ids(const std::vector<std::string>& tokens, const std::string& source);

// Returns the tokens of a vocab.txt in order; carriage returns, blanks and tabs at the end of a
// line are removed. Errors: no file; those of token_ids().
std::vector<std::string> read_vocabulary_lines(const Path& vocab_txt);
// Returns the content of such a file.
std::string vocabulary_text(const std::vector<std::string>& tokens);

struct PipelineRules;

// What stands between two texts of a sequence, and the segment of the second one.
struct PairTemplate {
  int separators = 1;  // RoBERTa: 2
  int second_segment = 1;

  bool operator==(const PairTemplate&) const = default;
};

// What the files of a vocabulary contain.
struct VocabularyParts {
  std::vector<std::string> tokens;  // of the model, by id; an empty one is no token
  // Tokens looked for in the text: those of the model, and others, whose ids follow the model's.
  // The special tokens need not be among them.
  std::vector<AddedToken> added = {};
  SpecialNames names = {};
  // How its tokenizer treats text (pipeline.h); null: as BERT's WordPiece.
  std::shared_ptr<const PipelineRules> pipeline = {};
  PairTemplate pair = {};

  bool operator==(const VocabularyParts&) const = default;
};

class Vocabulary {
 public:
  // One token per line, line number = id. Errors, each with the path and the line or the token:
  // those of read_vocabulary_lines(); no [UNK], [CLS], [SEP], [MASK] or [PAD].
  static Vocabulary load(const Path& vocab_txt);
  // Performs the same checks; errors name `source`. A warning reports repeated and empty lines,
  // once for each list of tokens.
  static Vocabulary from_tokens(std::vector<std::string> tokens, const std::string& source);
  // Error also: an added token with an id that `tokenizers` would not give it.
  static Vocabulary from_parts(VocabularyParts parts, const std::string& source);

  // The number of ids: those of the model, then those of added tokens.
  int32_t size() const { return static_cast<int32_t>(tokens_.size()); }
  int32_t model_size() const { return model_size_; }
  const std::vector<std::string>& tokens() const { return tokens_; }  // by id
  const std::string& token(int32_t id) const { return tokens_[static_cast<size_t>(id)]; }
  // The id of exactly this token, including "##"; of a repeated one the last.
  std::optional<int32_t> find(std::string_view token) const;

  int32_t unknown_id() const { return unknown_id_; }
  int32_t cls_id() const { return cls_id_; }
  int32_t sep_id() const { return sep_id_; }
  int32_t mask_id() const { return mask_id_; }
  int32_t pad_id() const { return pad_id_; }

  // All tokens that are looked for in the text, by id, the special ones included.
  const std::vector<AddedToken>& added() const { return added_; }
  const SpecialNames& names() const { return names_; }
  VocabularyParts parts() const;
  // Null: BERT's WordPiece.
  const std::shared_ptr<const PipelineRules>& pipeline() const { return pipeline_; }
  const PairTemplate& pair_template() const { return pair_; }
  // Whether vocab.txt says all: BERT's WordPiece, and only BERT's special tokens are looked for in the text.
  bool is_plain() const { return is_plain_; }

  // Whether the token continues a word: it starts with "##", or lacks the mark with which words of
  // other tokenizers begin.
  bool is_continuation(int32_t id) const {
    if (id >= model_size_) return false;
    const std::string& text = token(id);
    return word_mark_.empty() ? text.starts_with("##")
                              : !text.starts_with(word_mark_) && !is_added(id);
  }
  // A checksum of the tokens in order (FNV-1a), and of the added ones if it is not plain. Stores
  // and checkpoints record it to detect a different vocabulary.
  uint32_t checksum() const { return checksum_; }
  // Writes vocab.txt atomically; it has the model's tokens.
  void save(const Path& vocab_txt) const;

 private:
  void set_added(std::vector<AddedToken> added, const std::string& source);
  void set_roles(const std::string& source);
  bool is_added(int32_t id) const;

  std::vector<std::string> tokens_;
  int32_t model_size_ = 0;
  TokenIds ids_;
  std::vector<AddedToken> added_;
  SpecialNames names_;
  std::shared_ptr<const PipelineRules> pipeline_;
  std::string word_mark_;
  PairTemplate pair_;
  bool is_plain_ = true;
  int32_t unknown_id_ = 0, cls_id_ = 0, sep_id_ = 0, mask_id_ = 0, pad_id_ = 0;
  uint32_t checksum_ = 0;
};

}  // namespace onebit::text
