// The tokens of a paragraph that an answer's words turned into.
#pragma once

#include <cstdint>
#include <vector>

#include "onebit/squad/context_pieces.h"
#include "onebit/squad/dataset.h"

namespace onebit::squad {

// Both inclusive; empty when last < first.
struct AnswerSpan {
  int64_t first = 0, last = -1;

  bool operator==(const AnswerSpan&) const = default;
};

// All tokens of the answer's words; inside them, where the tokens of the answer's text alone occur,
// those: "(1895-1943)." to "1895".
AnswerSpan find_answer(text::Tokenizer& tokenizer, const std::vector<ContextPiece>& context,
                       const Answer& answer);

}  // namespace onebit::squad
