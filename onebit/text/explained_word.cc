#include "onebit/text/explained_word.h"

namespace onebit::text {

std::string_view fate_text(WordFate fate) {
  switch (fate) {
    case WordFate::kSpecialToken:
      return "special token";
    case WordFate::kWhole:
      return "in the vocabulary";
    case WordFate::kPieces:
      return "not in the vocabulary: longest match from the left";
    case WordFate::kNoMatch:
      return "[UNK]: no token of the vocabulary fits somewhere in it";
    case WordFate::kTooLong:
      return "[UNK]: longer than 100 characters";
    case WordFate::kVanished:
      return "nothing left: only accents, controls or bytes that are not UTF-8";
  }
  return "";
}

}  // namespace onebit::text
