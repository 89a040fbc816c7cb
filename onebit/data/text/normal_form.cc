#include "onebit/data/text/normal_form.h"

#include <unicode/normalizer2.h>
#include <unicode/uchar.h>
#include <unicode/unistr.h>

#include <algorithm>
#include <utility>

#include "onebit/data/text/utf8.h"
#include "onebit/ground/base/error.h"

namespace onebit::text {

namespace {

constexpr uint8_t kUnicodeVersion = 9;

bool is_known(char32_t code_point) {
  UVersionInfo age;
  u_charAge(static_cast<UChar32>(code_point), age);
  return age[0] != 0 && age[0] <= kUnicodeVersion;
}

const icu::Normalizer2& decomposer() {
  UErrorCode status = U_ZERO_ERROR;
  const icu::Normalizer2* nfd = icu::Normalizer2::getNFDInstance(status);
  require(U_SUCCESS(status), "ICU has no data for Unicode decomposition: {}; install its data",
          u_errorName(status));
  return *nfd;
}

uint8_t combining_class(const icu::Normalizer2& nfd, char32_t code_point) {
  return is_known(code_point) ? nfd.getCombiningClass(static_cast<UChar32>(code_point)) : 0;
}

// A code point of the decomposition. `added` if it is not the first one of its character.
struct Part {
  char32_t code_point;
  bool added;
};

void append_decomposition(const icu::Normalizer2& nfd, char32_t code_point,
                          std::vector<Part>& parts) {
  icu::UnicodeString text;
  if (!is_known(code_point) || !nfd.getDecomposition(static_cast<UChar32>(code_point), text)) {
    parts.push_back({code_point, false});
    return;
  }
  for (int32_t i = 0; i < text.length(); i = text.moveIndex32(i, 1)) {
    parts.push_back({static_cast<char32_t>(text.char32At(i)), i > 0});
  }
}

// Marks between two code points of class 0 are ordered by their class, equal classes as they came.
// A word may be one run of millions of marks, so the sort must not be quadratic in it.
void order_marks(const icu::Normalizer2& nfd, std::vector<Part>& parts) {
  using Marked = std::pair<uint8_t, Part>;
  std::vector<Marked> run;
  for (size_t begin = 0; begin < parts.size();) {
    run.clear();
    for (size_t i = begin; i < parts.size(); ++i) {
      const uint8_t order = combining_class(nfd, parts[i].code_point);
      if (order == 0) break;
      run.emplace_back(order, parts[i]);
    }
    std::stable_sort(run.begin(), run.end(),
                     [](const Marked& a, const Marked& b) { return a.first < b.first; });
    for (const Marked& mark : run) parts[begin++] = mark.second;
    ++begin;
  }
}

}  // namespace

void decompose_in_order(std::string_view raw, const Characters& characters,
                        std::vector<AlignedCharacter>& result) {
  const icu::Normalizer2& nfd = decomposer();
  std::vector<Part> parts;
  std::vector<std::pair<uint32_t, uint32_t>> places;  // of the characters of `raw` in order
  for (uint32_t at = 0; at < raw.size();) {
    const DecodedCharacter c = decode_utf8(raw.substr(at));
    if (characters.kind(c.code_point) != CharacterKind::kDropped) {
      append_decomposition(nfd, c.code_point, parts);
      places.emplace_back(at, at + c.size_bytes);
    }
    at += c.size_bytes;
  }
  order_marks(nfd, parts);
  result.clear();
  size_t next = 0;
  for (const Part& part : parts) {
    if (!part.added) ++next;
    const auto [begin, end] = places[next == 0 ? 0 : next - 1];
    const NormalForm form = characters.normal_form(part.code_point);
    for (int k = 0; k < form.size; ++k) result.push_back({form.code_points[k], begin, end});
  }
}

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
