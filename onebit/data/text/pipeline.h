// A tokenizer as Hugging Face's `tokenizers` describes it: normaliser, pre-tokenizer, model. BERT's
// WordPiece, with BERT's normaliser and pre-tokenizer, has a faster way of its own (tokenizer.h).
#pragma once

#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "onebit/data/text/added_token_finder.h"
#include "onebit/data/text/normalizer.h"
#include "onebit/data/text/pre_tokenizer.h"
#include "onebit/data/text/subword_models.h"
#include "onebit/data/text/word_cache.h"

namespace onebit::text {

// What a pipeline does, without its added tokens. Threads share it.
struct PipelineRules {
  Normalizer normalizer;
  PreTokenizer pre_tokenizer;
  std::variant<BytePairs, Unigram, WordPieces> model;
  // Words can be cut before each of these without a difference; empty: nowhere.
  std::string cuts_before;
  // Offsets leave out blanks at a token's ends, but for one that the tokenizer put before a text.
  bool trims_offsets = false;
  bool adds_prefix_space = false;
  // With what a token begins that begins a word, or, if that is empty, one that continues a word,
  // or with what one ends that ends a word. All empty: unknown.
  std::string word_mark = {}, continuing_mark = {}, word_end = {};
  // Checksum of the file's members that say all this.
  uint32_t checksum = 0;
  // The files that say it, by name, so that a folder can be written again as it was read.
  std::map<std::string, std::string> files;
};

// Not thread-safe, because it caches words.
class Pipeline {
 public:
  // Error: an added token whose normal form is empty.
  Pipeline(std::shared_ptr<const PipelineRules> rules, const std::vector<AddedToken>& added,
           const std::vector<std::string>& tokens);
  // A copy shares what does not change and starts with an empty cache.
  Pipeline(const Pipeline& other);
  Pipeline(Pipeline&&) noexcept = default;

  // Appends the ids of a text, in which bytes that are not UTF-8 count as U+FFFD.
  void encode(std::string_view utf8, std::vector<int32_t>& ids);
  // Appends the same ids with their bytes in `utf8`.
  void encode_with_offsets(std::string_view utf8, std::vector<Piece>& tokens);

 private:
  // The blanks at both ends of a token's text.
  struct Blanks {
    uint32_t leading = 0, trailing = 0;
  };

  template <typename OnText, typename OnToken>
  void split(std::string_view utf8, bool has_origins, const OnText& on_text,
             const OnToken& on_token);
  void add_ids(const Words& words, std::vector<int32_t>& ids);
  void add_word_ids(std::string_view word, std::vector<int32_t>& ids);
  void add_tokens(std::string_view utf8, const Words& words, size_t first,
                  std::vector<Piece>& tokens);
  void split_word(std::string_view word);
  static Blanks blanks_of(std::string_view token);
  // Leaves as many characters of the text out, as the reference does, whatever they are.
  void trim(std::string_view utf8, Blanks blanks, bool is_first, Piece& token) const;

  std::shared_ptr<const PipelineRules> rules_;
  std::shared_ptr<const std::vector<Blanks>> blanks_;  // by id, for trim()
  std::shared_ptr<const TokenPatterns> written_, normalized_;
  WordCache cache_;
  std::vector<Piece> parts_;
  std::vector<int32_t> word_ids_;
};

}  // namespace onebit::text
