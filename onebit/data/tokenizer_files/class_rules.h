// What the classes of transformers 5 make of a tokenizer.json. Those with rules of their own take
// the vocabulary from it, and build the normaliser, the pre-tokeniser and the settings of the model
// from tokenizer_config.json.
#pragma once

#include <optional>
#include <string>

#include "onebit/data/tokenizer_files/tokenizer_config.h"
#include "onebit/data/tokenizer_files/tokenizer_json.h"
#include "onebit/ground/base/file.h"
#include "onebit/ground/base/json_fwd.h"

namespace onebit::formats {

// The class that transformers 5 takes for a tokenizer.json in `folder` if tokenizer_config.json
// names none: config.json names it, or its model_type implies it. Empty: neither does, or the class
// has no such model.
std::string implied_class(const Path& folder, const Json& tokenizer);

// The content of a tokenizer.json in `folder`, with the class's "normalizer", "pre_tokenizer" and
// settings of "model" (the unknown token, prefixes and so on) if it has byte pairs or a unigram
// model. What differs from the file's is logged with `place`, the file's. Models of some types are
// read without their class.
Json with_class_rules(const Path& folder, Json tokenizer,
                      const std::optional<TokenizerConfigMembers>& members,
                      const std::string& place);

// Error: a class of WordPiece lower-cases or strips accents by default where the file does not.
void check_word_piece_rules(const TokenizerConfigMembers& members, const TokenizerJson& json,
                            const std::string& config_place);

// Errors: the class is made for another model than the file has.
void check_word_piece_class(const std::optional<TokenizerConfigMembers>& members,
                            const std::string& place);
void check_pipeline_class(const std::optional<TokenizerConfigMembers>& members,
                          const TokenizerJson& json, const Path& combined);

}  // namespace onebit::formats
