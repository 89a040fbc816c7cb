// Tokens that a tokenizer has beside its model: they are found in the text before it is split into
// words. Hugging Face calls them added tokens; the special tokens are among them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "onebit/ground/base/json_fwd.h"

namespace onebit::text {

struct AddedToken {
  int32_t id = 0;
  std::string content;
  bool single_word = false;  // not found inside a word
  bool lstrip = false;       // takes the white space before it
  bool rstrip = false;       // takes the white space after it
  bool normalized = false;   // its normal form is looked for in the normal form of the text
  bool special = false;      // represents no text

  bool operator==(const AddedToken&) const = default;
};

// Whether such a token is found wherever its content stands in the text as it is written.
bool is_found_as_written(const AddedToken& token);

// The member of tokenizer.json's `added_tokens` for this token.
Json added_token_json(const AddedToken& token);
// Reads the settings of such an object; without `id`. Errors: no content, an unknown key.
AddedToken read_added_token(JsonReader& reader);

}  // namespace onebit::text
