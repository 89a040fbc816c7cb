#include "onebit/data/text/normalized_text.h"

#include "onebit/data/text/utf8.h"

namespace onebit::text {

void NormalizedText::add(std::string_view text, NormalizedWord::Range origin) {
  text_.append(text);
  origins_.resize(text_.size(), origin);
}

void NormalizedText::add_word(std::string_view raw, uint32_t at, const Characters& characters) {
  word_.assign(raw, characters);
  const std::string_view normal = word_.text();
  for (size_t begin = 0; begin < normal.size();) {
    const size_t end = begin + decode_utf8(normal.substr(begin)).size_bytes;
    const NormalizedWord::Range range = word_.raw_range(begin, end);
    add(normal.substr(begin, end - begin), {at + range.begin, at + range.end});
    begin = end;
  }
}

void NormalizedText::assign(std::string_view raw, const Characters& characters) {
  text_.clear();
  origins_.clear();
  size_t word_begin = 0;
  const auto end_word = [&](size_t end) {
    if (word_begin < end) {
      add_word(raw.substr(word_begin, end - word_begin), static_cast<uint32_t>(word_begin),
               characters);
    }
  };
  for (size_t at = 0; at < raw.size();) {
    const DecodedCharacter c = decode_utf8(raw.substr(at));
    const size_t end = at + c.size_bytes;
    const CharacterKind kind = characters.kind(c.code_point);
    if (kind == CharacterKind::kSpace || kind == CharacterKind::kSingle) {
      end_word(at);
      word_begin = end;
      const auto begin = static_cast<uint32_t>(at);
      const NormalizedWord::Range origin{begin, static_cast<uint32_t>(end)};
      const bool apart = kind == CharacterKind::kSpace || characters.is_ideograph(c.code_point);
      if (apart) add(" ", origin);
      if (kind == CharacterKind::kSingle) add_word(raw.substr(at, c.size_bytes), begin, characters);
      if (apart && kind == CharacterKind::kSingle) add(" ", origin);
    }
    at = end;
  }
  end_word(raw.size());
}

}  // namespace onebit::text
