#include "onebit/data/text/explained_word.h"

namespace onebit::text {

std::string_view outcome_text(WordOutcome outcome) {
  switch (outcome) {
    case WordOutcome::kSpecialToken:
      return "special token";
    case WordOutcome::kAddedToken:
      return "added token";
    case WordOutcome::kWhole:
      return "in the vocabulary";
    case WordOutcome::kPieces:
      return "not in the vocabulary: longest match from the left";
    case WordOutcome::kNoMatch:
      return "[UNK]: part of the word matches no vocabulary token";
    case WordOutcome::kTooLong:
      return "[UNK]: longer than 100 characters";
    case WordOutcome::kVanished:
      return "empty after normalisation: only accents, control characters or bytes that are not "
             "UTF-8";
  }
  return "";
}

}  // namespace onebit::text
