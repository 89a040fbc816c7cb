// A tokenizer's vocabulary: the tokens of the WordPiece model, whose positions are the ids, one per
// line of a BERT model's vocab.txt, and the tokens that were added to it.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "onebit/data/text/added_token_finder.h"
#include "onebit/data/text/decoder.h"
#include "onebit/ground/base/file.h"
#include "onebit/ground/base/json_fwd.h"

namespace onebit::text {

// The five tokens that every BERT vocabulary has and that represent no text.
inline constexpr std::string_view kPadToken = "[PAD]";
inline constexpr std::string_view kUnknownToken = "[UNK]";
inline constexpr std::string_view kClsToken = "[CLS]";
inline constexpr std::string_view kSepToken = "[SEP]";
inline constexpr std::string_view kMaskToken = "[MASK]";

// In the order of their ids in a trained vocabulary.
inline constexpr std::array<std::string_view, 5> kSpecialTokens = {
    kPadToken, kUnknownToken, kClsToken, kSepToken, kMaskToken};

// What a tokenizer calls them.
struct SpecialNames {
  std::string unknown{kUnknownToken}, sep{kSepToken}, pad{kPadToken}, cls{kClsToken},
      mask{kMaskToken};

  bool operator==(const SpecialNames&) const = default;
};

// Returns the special token at the front of `text`, or an empty view. Special tokens are recognised
// anywhere in a text, but only in this spelling.
inline std::string_view special_token_at(std::string_view text) {
  for (const std::string_view token : kSpecialTokens) {
    if (text.starts_with(token)) return token;
  }
  return {};
}

struct TokenHash {
  using is_transparent = void;
  size_t operator()(std::string_view text) const { return std::hash<std::string_view>{}(text); }
};
using TokenIds = std::unordered_map<std::string, int32_t, TokenHash, std::equal_to<>>;

// The position of each token, of a repeated one the last, as transformers has it. Errors, with the
// line in `source`: no tokens, bytes that are not UTF-8, a byte order mark.
TokenIds token_ids(const std::vector<std::string>& tokens, const std::string& source);

// Returns the tokens of a vocab.txt in order. White space at the end of a line is removed, no-break
// spaces too, as `tokenizers` does: "a" and "a " are one token there, that of the later line.
// Errors: no file, and the errors of token_ids().
std::vector<std::string> read_vocabulary_lines(const Path& vocab_txt);
// Returns the tokens of a file that Vocabulary::save() wrote. They may end with white space, as
// they may in tokenizer.json.
std::vector<std::string> read_saved_tokens(const Path& vocab_txt);
// Returns the content of such a file.
std::string vocabulary_text(const std::vector<std::string>& tokens);

struct PipelineRules;

// What stands between two texts of a sequence, and the segment of the second one.
struct PairTemplate {
  int separators = 1;  // RoBERTa: 2
  int second_segment = 1;

  bool operator==(const PairTemplate&) const = default;
};

// What a tokenizer's folder says that changes no id, and that its users would miss in a folder that
// is written from it.
struct KeptSettings {
  // Members of tokenizer_config.json, as JSON: {"padding_side", "\"left\""}.
  std::map<std::string, std::string> members = {};
  std::map<std::string, std::string> files = {};  // content by name

  bool operator==(const KeptSettings&) const = default;
};

// What the files of a vocabulary contain.
struct VocabularyParts {
  std::vector<std::string> tokens;  // of the model, by id. An empty one is no token
  // Tokens looked for in the text: the model's, and others, whose ids follow the model's. The
  // special tokens need not be among them.
  std::vector<AddedToken> added = {};
  SpecialNames names = {};
  // Whether the tokens of these names are looked for in the text though `added` lacks them.
  bool finds_names = true;
  // How its tokenizer treats text (pipeline.h). Null: as BERT's WordPiece.
  std::shared_ptr<const PipelineRules> pipeline = {};
  PairTemplate pair = {};
  // Whether a model is told the segments. If not, both texts are in segment 0 for it.
  bool has_segments = true;
  Decoder decoder = {};  // from ids to text
  KeptSettings kept = {};

  bool operator==(const VocabularyParts&) const = default;
};

class Vocabulary {
 public:
  // One token per line, line number = id. Errors, each with the path and the line or the token: as
  // for read_vocabulary_lines(), and no [UNK], [CLS], [SEP], [MASK] or [PAD].
  static Vocabulary load(const Path& vocab_txt);
  // Performs the same checks. Errors name `source`. A warning reports repeated and empty lines,
  // once for each list of tokens.
  static Vocabulary from_tokens(std::vector<std::string> tokens, const std::string& source);
  // Error also: an added token with an id that `tokenizers` would not give it.
  static Vocabulary from_parts(VocabularyParts parts, const std::string& source);

  // The number of ids: the model's, then the added tokens'.
  int32_t size() const { return static_cast<int32_t>(tokens_.size()); }
  int32_t model_size() const { return model_size_; }
  const std::vector<std::string>& tokens() const { return tokens_; }  // by id
  const std::string& token(int32_t id) const { return tokens_[static_cast<size_t>(id)]; }
  // The id of exactly this token, including "##". Of a repeated one the last.
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
  bool has_segments() const { return has_segments_; }
  // The segment of a pair's second text for a model that is used or fine-tuned.
  int32_t second_segment() const { return has_segments_ ? pair_.second_segment : 0; }
  const Decoder& decoder() const { return decoder_; }
  const KeptSettings& kept() const { return kept_; }
  // The text of ids (Tokenizer::decode()).
  std::string decode(std::span<const int32_t> ids, bool skips_special) const;
  // Whether vocab.txt says all: the model is BERT's WordPiece, and only BERT's special tokens are
  // looked for in the text.
  bool is_plain() const { return is_plain_; }

  // Whether the tokens show where words begin or end. If not, each counts as a word.
  bool shows_words() const { return shows_words_; }
  // Whether the token continues a word: it starts with "##", or lacks the mark with which words of
  // other tokenizers begin. With tokens that mark a word's end, every other token may continue one.
  bool is_continuation(int32_t id) const;
  // Whether no word continues after the token: it has the mark of a word's end, or is no word's.
  bool ends_word(int32_t id) const;
  // A checksum of the tokens in order (FNV-1a), and of the added ones if it is not plain. Stores
  // and checkpoints record it to detect a different vocabulary.
  uint32_t checksum() const { return checksum_; }
  // Writes vocab.txt atomically. It has the model's tokens.
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
  std::string word_mark_, continuing_mark_ = "##", word_end_;
  PairTemplate pair_;
  bool has_segments_ = true, finds_names_ = true, shows_words_ = true, is_plain_ = true;
  Decoder decoder_;
  KeptSettings kept_;
  int32_t unknown_id_ = 0, cls_id_ = 0, sep_id_ = 0, mask_id_ = 0, pad_id_ = 0;
  uint32_t checksum_ = 0;
};

// The difference of two vocabularies.
struct VocabularyDifference {
  int32_t first_id = 0;  // first id with different tokens, or the end of the shorter vocabulary
  int32_t ids = 0;       // number of ids with different tokens or only in the longer vocabulary
};

// Returns nothing if they are equal.
std::optional<VocabularyDifference> difference(const Vocabulary& a, const Vocabulary& b);

}  // namespace onebit::text
