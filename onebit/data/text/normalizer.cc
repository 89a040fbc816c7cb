#include "onebit/data/text/normalizer.h"

#include <unicode/uchar.h>
#include <unicode/ustring.h>

#include <algorithm>

#include "onebit/data/text/utf8.h"
#include "onebit/ground/base/error.h"

namespace onebit::text {
namespace {

bool is_space(char32_t c) {
  return u_hasBinaryProperty(static_cast<UChar32>(c), UCHAR_WHITE_SPACE) != 0;
}

bool is_mark(char32_t c) {
  return (U_MASK(u_charType(static_cast<UChar32>(c))) & U_GC_M_MASK) != 0;
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

void write_stripped(const NormalizedText& from, const StripStep& step, NormalizedText& to) {
  size_t at = 0, begin = from.size(), end = 0;
  for_each_character(from.text(), [&](std::string_view character, char32_t c) {
    if (!is_space(c)) {
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
