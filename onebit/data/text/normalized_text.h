// A whole text in the normal form of BERT's normaliser, and the origin of its bytes. Added tokens
// are looked for in it, since they may be more than a word.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "onebit/data/text/characters.h"
#include "onebit/data/text/normalized_word.h"

namespace onebit::text {

class NormalizedText {
 public:
  // White space becomes a blank, and an ideograph stands between two blanks, as in Hugging Face's
  // BertNormalizer; the rest is the words' normal form. `raw` must be below 4 GiB.
  void assign(std::string_view raw, const Characters& characters);

  const std::string& text() const { return text_; }
  // The byte range of the raw text that bytes [begin, end) of text() come from; begin < end.
  NormalizedWord::Range raw_range(size_t begin, size_t end) const {
    return {origins_[begin].begin, origins_[end - 1].end};
  }

 private:
  void add(std::string_view text, NormalizedWord::Range origin);
  void add_word(std::string_view raw, uint32_t at, const Characters& characters);

  std::string text_;
  std::vector<NormalizedWord::Range> origins_;  // by byte
  NormalizedWord word_;
};

}  // namespace onebit::text
