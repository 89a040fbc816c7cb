// The tokens of a paragraph that correspond to an answer's words.
#pragma once

#include <cstdint>
#include <vector>

#include "onebit/apps/squad/context_pieces.h"
#include "onebit/apps/squad/dataset.h"

namespace onebit::squad {

// First and last token, both inclusive; empty if last < first.
struct AnswerSpan {
  int64_t first = 0, last = -1;

  bool operator==(const AnswerSpan&) const = default;
};

// The tokens of the answer's text within those of its words ("1895" in "(1895-1943)."), or all
// tokens of the words if it does not occur there.
AnswerSpan find_answer(text::Tokenizer& tokenizer, const std::vector<ContextPiece>& context,
                       const Answer& answer);

}  // namespace onebit::squad
