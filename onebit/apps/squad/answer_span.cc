#include "onebit/apps/squad/answer_span.h"

#include <algorithm>

namespace onebit::squad {

AnswerSpan find_answer(text::Tokenizer& tokenizer, const std::vector<ContextPiece>& context,
                       const Answer& answer) {
  const auto first_of_word = [&](int32_t word) {
    const auto found = std::lower_bound(
        context.begin(), context.end(), word,
        [](const ContextPiece& piece, int32_t value) { return piece.word < value; });
    return static_cast<int64_t>(found - context.begin());
  };
  const AnswerSpan words{first_of_word(answer.first_word), first_of_word(answer.last_word + 1) - 1};
  std::vector<int32_t> wanted;
  tokenizer.encode(answer.text, wanted);
  const auto size = static_cast<int64_t>(wanted.size());
  for (int64_t first = words.first; size > 0 && first + size - 1 <= words.last; ++first) {
    const bool equal =
        std::equal(wanted.begin(), wanted.end(), context.begin() + first,
                   [](int32_t id, const ContextPiece& piece) { return id == piece.id; });
    if (equal) return {first, first + size - 1};
  }
  return words;
}

}  // namespace onebit::squad
