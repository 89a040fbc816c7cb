// The tokens of a paragraph that an answer's words turned into.
#pragma once

#include <cstdint>
#include <vector>

#include "onebit/data/context_piece.h"
#include "onebit/data/squad_dataset.h"
#include "onebit/text/tokenizer.h"

namespace onebit::data {

// Both inclusive; empty when last < first.
struct AnswerSpan {
  int64_t first = 0, last = -1;

  bool operator==(const AnswerSpan&) const = default;
};

// All tokens of the answer's words; inside them, where the tokens of the answer's text alone occur,
// those: "(1895-1943)." to "1895".
AnswerSpan find_answer(text::Tokenizer& tokenizer, const std::vector<ContextPiece>& context,
                       const SquadAnswer& answer);

}  // namespace onebit::data
