// A SQuAD paragraph as tokens, each with its position in the text.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "onebit/data/text/tokenizer.h"

namespace onebit::squad {

struct ContextPiece {
  int32_t id;
  uint32_t begin, end;  // bytes of the context
  int32_t word;         // index in ContextWords

  bool operator==(const ContextPiece&) const = default;
};

std::vector<ContextPiece> context_pieces(text::Tokenizer& tokenizer, std::string_view context);

}  // namespace onebit::squad
