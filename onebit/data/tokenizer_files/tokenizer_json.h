// tokenizer.json, the file of Hugging Face's `tokenizers`. WordPiece has BertNormalizer and
// BertPreTokenizer, and other models have a pipeline (pipeline_json.h). Every member is understood,
// known to change no id, or an error that names it.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "onebit/data/text/pipeline.h"
#include "onebit/data/text/vocabulary.h"
#include "onebit/ground/base/json_fwd.h"

namespace onebit::formats {

struct TokenizerJson {
  std::vector<std::string> vocabulary;  // of the model, by id, "" where an id has no token
  std::vector<text::AddedToken> added;
  // The normaliser's settings, of WordPiece.
  bool lower_case = true;
  std::optional<bool> strip_accents;
  bool handle_chinese_chars = true;
  std::string unk_token = "[UNK]";
  std::shared_ptr<text::PipelineRules> pipeline = {};  // null: WordPiece
  text::PairTemplate pair = {};
  // [CLS] and [SEP] of the post-processor, absent if the file has none.
  std::optional<std::string> cls_token, sep_token;
};

// Errors name `place` and the member: another normaliser, pre-tokeniser, model or template, a
// setting that onebit's tokenizer does not follow, an unknown member.
TokenizerJson parse_tokenizer_json(const Json& json, const std::string& place);

// The whole file of a tokenizer whose "normalizer", "pre_tokenizer", "decoder" and "model" are in
// `parts`. Of `tokenizer` it has the added tokens and the template.
Json tokenizer_json(const Json& parts, const TokenizerJson& tokenizer,
                    const text::SpecialNames& names);
// The member "vocab" of a model: the id of each token.
Json vocabulary_json(const std::vector<std::string>& tokens);

// The text of such a file with WordPiece, equal to transformers' output, byte for byte. `added` is
// by id.
std::string tokenizer_json_text(const TokenizerJson& tokenizer, const text::SpecialNames& names);

}  // namespace onebit::formats
