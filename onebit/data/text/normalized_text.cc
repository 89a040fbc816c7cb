#include "onebit/data/text/normalized_text.h"

#include "onebit/data/text/utf8.h"

namespace onebit::text {

void NormalizedText::clear() {
  text_.clear();
  origins_.clear();
}

void NormalizedText::assign(std::string_view raw, size_t at) {
  clear();
  const bool is_utf8 = !first_invalid_utf8(raw);
  if (is_utf8) text_.assign(raw);
  if (is_utf8 && !has_origins_) return;
  if (has_origins_) origins_.reserve(raw.size());
  for (size_t byte = 0; byte < raw.size();) {
    const DecodedCharacter c = decode_utf8(raw.substr(byte));
    const auto begin = static_cast<uint32_t>(at + byte);
    byte += c.size_bytes;
    if (!is_utf8) append_utf8(c.code_point, text_);
    if (has_origins_) {
      const size_t bytes = is_utf8 ? byte : text_.size();
      origins_.resize(bytes, {begin, begin + c.size_bytes});
    }
  }
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
  clear();
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

void Rewriting::put(std::string_view character, int change) {
  const auto next = [&] {
    if (at_ < from_.size()) {
      at_ += decode_utf8(std::string_view(from_.text()).substr(at_)).size_bytes;
    }
  };
  if (change > 0) {
    to_.add(character, at_ == 0 ? NormalizedText::Range{} : from_.origin(at_ - 1));
    return;
  }
  to_.add(character, at_ < from_.size() ? from_.origin(at_) : NormalizedText::Range{});
  for (int i = 0; i <= -change; ++i) next();
}

}  // namespace onebit::text
