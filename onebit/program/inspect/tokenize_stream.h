// Reads lines of text and writes their tokens, for `onebit tokenize`.
#pragma once

#include <istream>
#include <ostream>
#include <string>

#include "onebit/data/text/tokenizer.h"

namespace onebit::inspect {

enum class TokenizeFormat {
  kIds,          // "7592 1010 2088"
  kPieces,       // "hello , world"
  kOffsets,      // "7592:0:5 1010:5:6 2088:7:12", bytes of the line, end exclusive
  kExplanation,  // a line per word (place, word, normalised word, pieces, reason), then a blank one
};

// Writes one line per line of `in` (kExplanation: several). Lines end with '\n', which is not part
// of them. Errors name `source`: a line that is not UTF-8 (with its number and the byte), or a
// failed read or write. Lines before a faulty one have been written.
void tokenize_stream(std::istream& in, std::ostream& out, text::Tokenizer& tokenizer,
                     TokenizeFormat format, const std::string& source);

}  // namespace onebit::inspect
