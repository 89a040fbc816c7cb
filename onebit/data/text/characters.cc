#include "onebit/data/text/characters.h"

#include <unicode/uchar.h>

#include <algorithm>

#include "onebit/data/text/unicode_classes.h"
#include "onebit/data/text/utf8.h"

namespace onebit::text {
namespace {

bool contains(std::span<const CodePointRange> ranges, char32_t code_point) {
  const auto after =
      std::upper_bound(ranges.begin(), ranges.end(), code_point,
                       [](char32_t value, const CodePointRange& r) { return value < r.first; });
  return after != ranges.begin() && code_point <= std::prev(after)->last;
}

// Hangul syllables are decomposed by rule (The Unicode Standard, section 3.12).
constexpr char32_t kHangulFirst = 0xAC00, kHangulLast = 0xD7A3;
constexpr char32_t kLeadingFirst = 0x1100, kVowelFirst = 0x1161, kTrailingBefore = 0x11A7;
constexpr char32_t kVowels = 21, kTrailings = 28;

NormalForm hangul_form(char32_t code_point) {
  const char32_t index = code_point - kHangulFirst;
  const char32_t trailing = index % kTrailings;
  NormalForm form{{kLeadingFirst + index / (kVowels * kTrailings),
                   kVowelFirst + index / kTrailings % kVowels, kTrailingBefore + trailing},
                  trailing == 0 ? 2 : 3};
  return form;
}

CharacterKind kind_from_ranges(Casing casing, char32_t code_point) {
  if (contains(spaces(), code_point)) return CharacterKind::kSpace;
  if (contains(dropped(), code_point)) return CharacterKind::kDropped;
  if (contains(ideographs(), code_point) || contains(punctuation(), code_point)) {
    return CharacterKind::kSingle;
  }
  if (casing == Casing::kUncased && contains(uncased_punctuation(), code_point)) {
    return CharacterKind::kSingle;
  }
  return CharacterKind::kLetter;
}

}  // namespace

bool is_white_space(char32_t code_point) {
  return u_hasBinaryProperty(static_cast<UChar32>(code_point), UCHAR_WHITE_SPACE) != 0;
}

std::string_view without_spaces_at_end(std::string_view utf8) {
  while (!utf8.empty()) {
    const DecodedCharacter c = last_character(utf8);
    if (!is_white_space(c.code_point)) break;
    utf8.remove_suffix(c.size_bytes);
  }
  return utf8;
}

const Characters& Characters::get(Casing casing) {
  static const Characters uncased(Casing::kUncased), cased(Casing::kCased);
  if (casing == Casing::kUncased) return uncased;
  if (casing == Casing::kCased) return cased;
  static const Characters lower_cased(Casing::kLowerCased);
  return lower_cased;
}

Characters::Characters(Casing casing) : casing_(casing), kinds_(kTableSize) {
  for (char32_t c = 0; c < kTableSize; ++c) kinds_[c] = kind_from_ranges(casing, c);
  if (casing == Casing::kUncased) fill_uncased();
  if (casing == Casing::kLowerCased) fill_lower_case();
}

void Characters::add_runs(std::span<const MappingRun> runs) {
  for (const MappingRun& run : runs) {
    char32_t to = run.to;
    for (char32_t from = run.first; from <= run.last; from += run.stride, to += run.step) {
      mapping_[from] = {{to, 0, 0}, 1};
    }
  }
}

void Characters::add_pairs(std::span<const MappingPair> pairs) {
  for (const MappingPair& pair : pairs) mapping_[pair.from] = {{pair.to, 0, 0}, 1};
}

void Characters::add_expansions(std::span<const MappingExpansion> expansions) {
  for (const MappingExpansion& e : expansions) {
    mapping_[e.from] = {{e.to[0], e.to[1], e.to[2]}, e.to[2] == 0 ? 2 : 3};
  }
}

void Characters::fill_uncased() {
  add_runs(mapping_runs());
  add_pairs(mapping_pairs());
  add_expansions(mapping_expansions());
  for (const CodePointRange& range : stripped()) {
    for (char32_t c = range.first; c <= range.last; ++c) mapping_[c] = {{}, 0};
  }
}

void Characters::fill_lower_case() {
  add_runs(lower_case_runs());
  add_pairs(lower_case_pairs());
  add_expansions(lower_case_expansions());
}

CharacterKind Characters::kind_of_high(char32_t code_point) const {
  return kind_from_ranges(casing_, code_point);
}

NormalForm Characters::normal_form(char32_t code_point) const {
  if (casing_ != Casing::kCased) {
    const bool is_hangul = code_point >= kHangulFirst && code_point <= kHangulLast;
    if (is_hangul && casing_ == Casing::kUncased) return hangul_form(code_point);
    const auto found = mapping_.find(code_point);
    if (found != mapping_.end()) return found->second;
  }
  return {{code_point, 0, 0}, 1};
}

bool Characters::is_ideograph(char32_t code_point) const {
  return kind(code_point) == CharacterKind::kSingle && contains(ideographs(), code_point);
}

bool Characters::is_ordered_mark(char32_t code_point) const {
  return casing_ == Casing::kUncased && contains(ordered_marks(), code_point);
}

}  // namespace onebit::text
