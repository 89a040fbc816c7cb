// The members of tokenizer.json that say how a tokenizer with byte pairs or a unigram model treats
// text. Every member is understood, known to change no id, or an error that names it.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "onebit/data/text/pipeline.h"
#include "onebit/ground/base/json_fwd.h"

namespace onebit::formats {

struct PipelineJson {
  std::vector<std::string> vocabulary;  // by id, "" where an id has no token
  std::string unk_token;                // "" if the model has none
  std::shared_ptr<text::PipelineRules> rules;
};

// The tokens of {"the": 262, ...} by id, "" where an id has none. Errors name `place` and the key.
std::vector<std::string> vocabulary_of(const Json& vocabulary, const std::string& place);

// Whether the file's model is one of those.
bool has_pipeline(const Json& json);
// Reads `normalizer`, `pre_tokenizer`, `model`, and from `post_processor` what it does to offsets.
// Errors name `place` and the member.
PipelineJson parse_pipeline(const Json& json, const std::string& place);

}  // namespace onebit::formats
