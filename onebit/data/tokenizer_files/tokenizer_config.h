// tokenizer_config.json and special_tokens_map.json, which transformers writes beside a vocabulary.
// Every member is understood, known to change no id, or an error that names it.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "onebit/data/text/vocabulary.h"
#include "onebit/ground/base/json_fwd.h"

namespace onebit::formats {

// Both files' special tokens.
struct NamedSpecials {
  // By role: "mask_token". Their settings are present where the file has them.
  std::map<std::string, text::AddedToken> roles;
  std::vector<text::AddedToken> others;  // special tokens without a role of BERT's, with unset ids
};

struct TokenizerConfigMembers {
  std::string tokenizer_class = "BertTokenizer";
  // Whether the class is made for any tokenizer.json, so that BERT's rules are not implied.
  bool is_generic = false;
  // Whether the class is one of BERT's, with WordPiece.
  bool is_bert = false;
  // Whether the class has byte pairs or a unigram model.
  bool is_pipeline = false;
  // What the class puts around two texts, whatever tokenizer.json says. Absent: as the file says.
  std::optional<text::PairTemplate> pair;
  // Whether it gives a model `token_type_ids`: as `model_input_names` says, else as its class does
  // in transformers 5.
  bool has_segments = true;
  std::optional<bool> lower_case, strip_accents, tokenize_chinese_chars;
  std::optional<int64_t> model_max_length;
  std::optional<bool> add_prefix_space;
  std::optional<bool> keep_accents;  // of AlbertTokenizer
  NamedSpecials specials;
  std::vector<text::AddedToken> added;      // "added_tokens_decoder"
  std::map<std::string, std::string> kept;  // KeptSettings::members
};

// "No limit": transformers writes 10^30.
inline constexpr int64_t kNoLengthLimit = 1'000'000'000;

// JsonReader::finish() of a tokenizer's file, with the advice for a member that it does not know.
void finish_tokenizer_file(const JsonReader& reader);

TokenizerConfigMembers parse_tokenizer_config(const Json& json, const std::string& place);
NamedSpecials parse_special_tokens_map(const Json& json, const std::string& place);

}  // namespace onebit::formats
