#include "onebit/data/text/normalized_word.h"

#include <algorithm>

#include "onebit/data/text/utf8.h"

namespace onebit::text {

void NormalizedWord::assign(std::string_view raw, const Characters& characters) {
  characters_.clear();
  bool reorder = false;
  for (uint32_t at = 0; at < raw.size();) {
    const DecodedCharacter c = decode_utf8(raw.substr(at));
    const uint32_t end = at + c.size_bytes;
    if (characters.kind(c.code_point) != CharacterKind::kDropped) {
      const NormalForm form = characters.normal_form(c.code_point);
      for (int i = 0; i < form.size; ++i) {
        characters_.push_back({form.code_points[i], at, end});
        reorder = reorder || characters.is_ordered_mark(form.code_points[i]);
      }
    }
    at = end;
  }
  if (reorder) decompose_in_order(raw, characters, characters_);
  text_.clear();
  text_begins_.clear();
  for (const AlignedCharacter& c : characters_) {
    text_begins_.push_back(text_.size());
    append_utf8(c.code_point, text_);
  }
}

NormalizedWord::Range NormalizedWord::raw_range(size_t begin, size_t end) const {
  const auto character_at = [&](size_t byte) {
    const auto after = std::upper_bound(text_begins_.begin(), text_begins_.end(), byte);
    return characters_[static_cast<size_t>(after - text_begins_.begin()) - 1];
  };
  return {character_at(begin).begin, character_at(end - 1).end};
}

}  // namespace onebit::text
