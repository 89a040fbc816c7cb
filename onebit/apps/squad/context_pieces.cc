#include "onebit/apps/squad/context_pieces.h"

#include "onebit/apps/squad/context_words.h"

namespace onebit::squad {

std::vector<ContextPiece> context_pieces(text::Tokenizer& tokenizer, std::string_view context) {
  std::vector<text::Piece> pieces;
  tokenizer.encode_with_offsets(context, pieces);
  const ContextWords words(context);
  std::vector<ContextPiece> found;
  found.reserve(pieces.size());
  for (const text::Piece& piece : pieces) {
    found.push_back({piece.id, piece.begin, piece.end, words.word_at(piece.begin)});
  }
  return found;
}

}  // namespace onebit::squad
