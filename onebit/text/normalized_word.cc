#include "onebit/text/normalized_word.h"

#include <algorithm>
#include <utility>

#include "onebit/text/utf8.h"

namespace onebit::text {

void NormalizedWord::assign(std::string_view raw, const Characters& characters) {
  text_.clear();
  characters_.clear();
  sortable_from_ = 0;
  for (uint32_t at = 0; at < raw.size();) {
    const DecodedCharacter c = decode_utf8(raw.substr(at));
    const Range range{at, at + c.size_bytes};
    at += c.size_bytes;
    if (characters.kind(c.code_point) == CharacterKind::kDropped) continue;
    const NormalForm form = characters.normal_form(c.code_point);
    for (int i = 0; i < form.size; ++i) add(form.code_points[i], range, characters);
    if (form.size == 0 && characters.is_stripped_starter(c.code_point)) {
      sortable_from_ = characters_.size();
    }
  }
  for (Character& c : characters_) {
    c.text_begin = text_.size();
    append_utf8(c.code_point, text_);
  }
}

void NormalizedWord::add(char32_t code_point, Range raw, const Characters& characters) {
  characters_.push_back({code_point, raw, 0});
  const uint8_t order = characters.mark_order(code_point);
  if (order == 0) {
    sortable_from_ = characters_.size();
    return;
  }
  // Code points change places, positions stay: the reference aligns by position too.
  for (size_t i = characters_.size() - 1; i > sortable_from_; --i) {
    if (characters.mark_order(characters_[i - 1].code_point) <= order) break;
    std::swap(characters_[i - 1].code_point, characters_[i].code_point);
  }
}

NormalizedWord::Range NormalizedWord::raw_range(size_t begin, size_t end) const {
  const auto after = [](size_t value, const Character& c) { return value < c.text_begin; };
  const auto first = std::upper_bound(characters_.begin(), characters_.end(), begin, after) - 1;
  const auto last = std::upper_bound(first, characters_.end(), end - 1, after) - 1;
  return {first->raw.begin, last->raw.end};
}

}  // namespace onebit::text
