#include "onebit/data/text/normalizer.h"

#include <unicode/uchar.h>
#include <unicode/unorm2.h>

#include <algorithm>
#include <array>
#include <cstdint>

#include "onebit/data/text/characters.h"
#include "onebit/data/text/utf8.h"
#include "onebit/ground/base/error.h"

namespace onebit::text {
namespace {

constexpr uint8_t kNewestUnicode = 9;
constexpr char32_t kTableSize = 0x10000;
constexpr int kLongestDecomposition = 32;  // 18 in Unicode 9

bool is_known(char32_t c) {
  UVersionInfo age;
  u_charAge(static_cast<UChar32>(c), age);
  return age[0] <= kNewestUnicode;
}

uint8_t combining_class(char32_t c) {
  return c < 0x300 || !is_known(c) ? uint8_t{0} : u_getCombiningClass(static_cast<UChar32>(c));
}

// A form's data, and which characters it never changes beside others of that kind.
struct Rules {
  const UNormalizer2* decomposition;
  bool composes;
  std::vector<bool> inert;  // of the Basic Multilingual Plane
};

const UNormalizer2* instance(bool compatibility) {
  UErrorCode error = U_ZERO_ERROR;
  const UNormalizer2* found =
      compatibility ? unorm2_getNFKCInstance(&error) : unorm2_getNFCInstance(&error);
  ONEBIT_INVARIANT(U_SUCCESS(error));
  return found;
}

Rules rules_of(UnicodeForm form) {
  const bool compatibility = form == UnicodeForm::kNfkc || form == UnicodeForm::kNfkd;
  Rules rules{.decomposition = instance(compatibility),
              .composes = form == UnicodeForm::kNfc || form == UnicodeForm::kNfkc,
              .inert = std::vector<bool>(kTableSize)};
  constexpr UProperty kChecks[] = {UCHAR_NFC_QUICK_CHECK, UCHAR_NFD_QUICK_CHECK,
                                   UCHAR_NFKC_QUICK_CHECK, UCHAR_NFKD_QUICK_CHECK};
  const UProperty check = kChecks[static_cast<size_t>(form)];
  for (char32_t c = 0; c < kTableSize; ++c) {
    const auto character = static_cast<UChar32>(c);
    rules.inert[c] =
        u_getIntPropertyValue(character, check) == UNORM_YES && u_getCombiningClass(character) == 0;
  }
  return rules;
}

const Rules& rules(UnicodeForm form) {
  static const std::array<Rules, 4> all = {rules_of(UnicodeForm::kNfc), rules_of(UnicodeForm::kNfd),
                                           rules_of(UnicodeForm::kNfkc),
                                           rules_of(UnicodeForm::kNfkd)};
  return all[static_cast<size_t>(form)];
}

bool is_unchanged(std::string_view text, const Rules& rules) {
  for (size_t at = 0; at < text.size();) {
    if (static_cast<uint8_t>(text[at]) < 0x80) {
      ++at;
      continue;
    }
    const DecodedCharacter c = decode_utf8(text.substr(at));
    if (c.code_point >= kTableSize || !rules.inert[c.code_point]) return false;
    at += c.size_bytes;
  }
  return true;
}

// A character of a decomposed text, and its change (Rewriting::put).
struct Part {
  char32_t character;
  int change;
  uint8_t combining;
};

void decompose(char32_t c, const Rules& rules, std::vector<Part>& parts) {
  UChar units[kLongestDecomposition];
  UErrorCode error = U_ZERO_ERROR;
  const int32_t count = is_known(c)
                            ? unorm2_getDecomposition(rules.decomposition, static_cast<UChar32>(c),
                                                      units, kLongestDecomposition, &error)
                            : -1;
  if (count < 0) {
    parts.push_back({c, 0, combining_class(c)});
    return;
  }
  for (int32_t i = 0; i < count;) {
    const bool is_first = i == 0;
    UChar32 one;
    U16_NEXT(units, i, count, one);
    parts.push_back({static_cast<char32_t>(one), is_first ? 0 : 1,
                     combining_class(static_cast<char32_t>(one))});
  }
}

// Marks between two starters, in the order of their classes.
void reorder(std::vector<Part>& parts) {
  for (auto begin = parts.begin(); begin != parts.end();) {
    if (begin->combining == 0) {
      ++begin;
      continue;
    }
    const auto end =
        std::find_if(begin, parts.end(), [](const Part& part) { return part.combining == 0; });
    std::stable_sort(begin, end,
                     [](const Part& a, const Part& b) { return a.combining < b.combining; });
    begin = end;
  }
}

std::vector<Part> composed(const std::vector<Part>& parts, const UNormalizer2* data) {
  std::vector<Part> result;
  size_t starter = SIZE_MAX;  // the index of the last one
  uint8_t last = 0;           // class of the last part behind it
  for (const Part& part : parts) {
    const bool is_adjacent = starter != SIZE_MAX && starter + 1 == result.size();
    const bool is_open = starter != SIZE_MAX && (is_adjacent || last < part.combining);
    const UChar32 pair =
        is_open ? unorm2_composePair(data, static_cast<UChar32>(result[starter].character),
                                     static_cast<UChar32>(part.character))
                : -1;
    if (pair >= 0 && is_known(static_cast<char32_t>(pair))) {
      result[starter].character = static_cast<char32_t>(pair);
      result[starter].change += part.change - 1;
      continue;
    }
    if (part.combining == 0) starter = result.size();
    last = part.combining;
    result.push_back(part);
  }
  return result;
}

// Writes `from` in this form to `to`.
void write_in_form(const NormalizedText& from, UnicodeForm form, NormalizedText& to) {
  const Rules& chosen = rules(form);
  to.clear();
  if (is_unchanged(from.text(), chosen)) return to.add(from, 0, from.size());
  std::vector<Part> parts;
  const std::string_view text = from.text();
  for (size_t at = 0; at < text.size();) {
    const DecodedCharacter c = decode_utf8(text.substr(at));
    decompose(c.code_point, chosen, parts);
    at += c.size_bytes;
  }
  reorder(parts);
  if (chosen.composes) parts = composed(parts, chosen.decomposition);
  Rewriting rewriting(from, to);
  std::string character;
  for (const Part& part : parts) {
    character.clear();
    append_utf8(part.character, character);
    rewriting.put(character, part.change);
  }
}

bool is_mark(char32_t c) {
  return is_known(c) && (U_MASK(u_charType(static_cast<UChar32>(c))) & U_GC_M_MASK) != 0;
}

// The reference's table of these marks is older than its normal forms.
bool is_nonspacing(char32_t c) {
  return Characters::get(Casing::kUncased).normal_form(c).size == 0;
}

// Calls on_character(text, code_point) for the characters of a text.
template <typename OnCharacter>
void for_each_character(std::string_view text, const OnCharacter& on_character) {
  while (!text.empty()) {
    const DecodedCharacter c = decode_utf8(text);
    on_character(text.substr(0, c.size_bytes), c.code_point);
    text.remove_prefix(c.size_bytes);
  }
}

void write_lower_case(const NormalizedText& from, NormalizedText& to) {
  Rewriting rewriting(from, to);
  std::string lower;
  for_each_character(from.text(), [&](std::string_view, char32_t c) {
    lower.clear();
    append_utf8(static_cast<char32_t>(u_tolower(static_cast<UChar32>(c))), lower);
    rewriting.put(lower, 0);
    constexpr char32_t kDottedCapitalI = 0x130;  // the only one with two characters
    if (c == kDottedCapitalI) rewriting.put("\xCC\x87", 1);
  });
}

void write_without(const NormalizedText& from, bool (*is_left_out)(char32_t), NormalizedText& to) {
  size_t at = 0;
  for_each_character(from.text(), [&](std::string_view character, char32_t c) {
    if (!is_left_out(c)) to.add(from, at, at + character.size());
    at += character.size();
  });
}

void write_clean(const NormalizedText& from, NormalizedText& to) {
  const Characters& characters = Characters::get(Casing::kCased);
  size_t at = 0;
  for_each_character(from.text(), [&](std::string_view character, char32_t c) {
    const CharacterKind kind = characters.kind(c);
    const size_t end = at + character.size();
    if (kind == CharacterKind::kSpace) {
      to.add(" ", from.origin(at));
    } else if (kind != CharacterKind::kDropped) {
      to.add(from, at, end);
    }
    at = end;
  });
}

void write_apart(const NormalizedText& from, NormalizedText& to) {
  const Characters& characters = Characters::get(Casing::kCased);
  Rewriting rewriting(from, to);
  for_each_character(from.text(), [&](std::string_view character, char32_t c) {
    const bool is_ideograph = characters.is_ideograph(c);
    if (is_ideograph) rewriting.put(" ", 0);
    rewriting.put(character, is_ideograph ? 1 : 0);
    if (is_ideograph) rewriting.put(" ", 1);
  });
}

void write_stripped(const NormalizedText& from, const StripStep& step, NormalizedText& to) {
  size_t at = 0, begin = from.size(), end = 0;
  for_each_character(from.text(), [&](std::string_view character, char32_t c) {
    if (!is_white_space(c)) {
      begin = std::min(begin, at);
      end = at + character.size();
    }
    at += character.size();
  });
  if (!step.left) begin = 0;
  if (!step.right) end = from.size();
  if (begin < end) to.add(from, begin, end);
}

struct Apply {
  const NormalizedText& from;
  NormalizedText& to;

  void operator()(UnicodeForm form) const { write_in_form(from, form, to); }
  void operator()(const LowerCaseStep&) const { write_lower_case(from, to); }
  void operator()(const StripAccentsStep&) const { write_without(from, is_mark, to); }
  void operator()(const CleanTextStep&) const { write_clean(from, to); }
  void operator()(const IdeographStep&) const { write_apart(from, to); }
  void operator()(const StripNonspacingStep&) const { write_without(from, is_nonspacing, to); }
  void operator()(const StripStep& step) const { write_stripped(from, step, to); }
  void operator()(const PrependStep& step) const {
    append_with_prefix(from, 0, from.size(), step.text, to);
  }
  void operator()(const ReplaceStep& step) const { replace_all(from, step, to); }
  void operator()(const CharacterMapStep& step) const { step.map->apply(from, to); }
};

}  // namespace

void append_with_prefix(const NormalizedText& from, size_t begin, size_t end, std::string_view text,
                        NormalizedText& to) {
  if (begin == end) return;
  to.add(text, from.origin(begin));
  to.add(from, begin, end);
}

// What replaces a text has the origin of its last character.
void replace_all(const NormalizedText& from, const ReplaceStep& step, NormalizedText& to) {
  const std::string_view text = from.text();
  size_t done = 0;
  for (size_t at = text.find(step.pattern); at != std::string_view::npos;
       at = text.find(step.pattern, at)) {
    size_t end = at + step.pattern.size();
    if (step.is_run) {
      while (text.substr(end).starts_with(step.pattern)) end += step.pattern.size();
      if (end == at + step.pattern.size()) {
        at = end;
        continue;
      }
    }
    to.add(from, done, at);
    to.add(step.content, from.origin(end - 1));
    done = at = end;
  }
  to.add(from, done, from.size());
}

void Normalizer::apply(NormalizedText& text, NormalizedText& scratch) const {
  for (const NormalizerStep& step : steps_) {
    scratch.clear();
    std::visit(Apply{text, scratch}, step);
    std::swap(text, scratch);
  }
}

}  // namespace onebit::text
