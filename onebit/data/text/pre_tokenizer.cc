#include "onebit/data/text/pre_tokenizer.h"

#include <unicode/uchar.h>

#include <algorithm>
#include <cstdint>
#include <string_view>

#include "onebit/data/text/characters.h"
#include "onebit/data/text/normalizer.h"
#include "onebit/data/text/utf8.h"

namespace onebit::text {
namespace {

// The classes of GPT-2's pattern.
enum class Class : uint8_t { kLetter, kNumber, kSpace, kOther };
constexpr char32_t kTableSize = 0x10000;

Class class_of_high(char32_t code_point) {
  const auto c = static_cast<UChar32>(code_point);
  const uint32_t category = U_MASK(u_charType(c));
  if ((category & U_GC_L_MASK) != 0) return Class::kLetter;
  if ((category & U_GC_N_MASK) != 0) return Class::kNumber;
  return is_white_space(code_point) ? Class::kSpace : Class::kOther;
}

const std::vector<Class>& class_table() {
  static const std::vector<Class> table = [] {
    std::vector<Class> classes(kTableSize);
    for (char32_t c = 0; c < kTableSize; ++c) classes[c] = class_of_high(c);
    return classes;
  }();
  return table;
}

class WordCutter {
 public:
  explicit WordCutter(std::string_view text) : text_(text), table_(class_table().data()) {}

  // The end of the word of GPT-2's pattern that begins at byte `at`.
  size_t end_of_word(size_t at) const {
    if (text_[at] == '\'') {
      if (const size_t bytes = contraction(text_.substr(at + 1))) return at + 1 + bytes;
    }
    Character c = character(at);
    size_t begin = at;
    if (text_[at] == ' ' && at + 1 < text_.size()) {
      const Character next = character(at + 1);
      if (next.kind != Class::kSpace) {
        begin = at + 1;
        c = next;
      }
    }
    if (c.kind != Class::kSpace) return end_of_run(begin + c.bytes, c.kind);
    return end_of_spaces(at);
  }

 private:
  struct Character {
    Class kind;
    uint32_t bytes;
  };

  Character character(size_t at) const {
    const auto byte = static_cast<uint8_t>(text_[at]);
    if (byte < 0x80) return {table_[byte], 1};
    const DecodedCharacter c = decode_utf8(text_.substr(at));
    const Class kind =
        c.code_point < kTableSize ? table_[c.code_point] : class_of_high(c.code_point);
    return {kind, c.size_bytes};
  }
  size_t end_of_run(size_t at, Class kind) const {
    while (at < text_.size()) {
      const Character c = character(at);
      if (c.kind != kind) break;
      at += c.bytes;
    }
    return at;
  }
  // The last space of several belongs to what follows.
  size_t end_of_spaces(size_t at) const {
    size_t end = at, last = at;
    while (end < text_.size()) {
      const Character c = character(end);
      if (c.kind != Class::kSpace) return last > at ? last : end;
      last = end;
      end += c.bytes;
    }
    return end;
  }
  static size_t contraction(std::string_view behind) {
    for (const std::string_view one : {"s", "t", "re", "ve", "m", "ll", "d"}) {
      if (behind.starts_with(one)) return one.size();
    }
    return 0;
  }

  std::string_view text_;
  const Class* table_;
};

// \w of regular expressions.
bool is_word_character(char32_t code_point) {
  const auto c = static_cast<UChar32>(code_point);
  constexpr uint32_t kMarksDigitsConnectors = U_GC_M_MASK | U_GC_ND_MASK | U_GC_PC_MASK;
  return u_hasBinaryProperty(c, UCHAR_ALPHABETIC) != 0 ||
         (U_MASK(u_charType(c)) & kMarksDigitsConnectors) != 0 ||
         u_hasBinaryProperty(c, UCHAR_JOIN_CONTROL) != 0;
}

// As BERT counts punctuation: of ASCII all that is neither letter, digit, blank nor control.
bool is_of(CharacterSplitStep::Kind kind, char32_t code_point) {
  if (kind == CharacterSplitStep::Kind::kDigit) {
    return (U_MASK(u_charType(static_cast<UChar32>(code_point))) & U_GC_N_MASK) != 0;
  }
  const Characters& characters = Characters::get(Casing::kCased);
  return characters.kind(code_point) == CharacterKind::kSingle &&
         !characters.is_ideograph(code_point);
}

// Cuts a text of words into more of them.
class Cutter {
 public:
  Cutter(const Words& from, Words& to) : from_(from), to_(to) {}

  void operator()(const ByteLevelStep& step) {
    for (const Words::Range& word : from_.ranges) {
      const bool has_space = from_.text.text()[word.first] == ' ';
      copy(word, step.adds_prefix_space && !has_space ? " " : "");
      if (!step.cuts) {
        add(begin_, to_.text.size());
        continue;
      }
      const WordCutter cutter(to_.text.text());
      for (size_t at = begin_; at < to_.text.size();) {
        const size_t end = cutter.end_of_word(at);
        add(at, end);
        at = end;
      }
    }
  }

  void operator()(const MetaspaceStep& step) {
    const ReplaceStep replace{.pattern = " ", .content = step.replacement};
    NormalizedText replaced(from_.text.has_origins()), word_text(from_.text.has_origins());
    for (const Words::Range& word : from_.ranges) {
      word_text.clear();
      word_text.add(from_.text, word.first, word.second);
      replaced.clear();
      replace_all(word_text, replace, replaced);
      const bool is_first = from_.text.has_origins() && from_.text.origin(word.first).begin == 0;
      const bool adds = !replaced.text().starts_with(step.replacement) &&
                        (step.prefix == MetaspaceStep::Prefix::kAlways ||
                         (step.prefix == MetaspaceStep::Prefix::kFirst && is_first));
      begin_ = to_.text.size();
      append_with_prefix(replaced, 0, replaced.size(), adds ? step.replacement : "", to_.text);
      if (step.cuts) {
        cut_before_each(step.replacement);
      } else {
        add(begin_, to_.text.size());
      }
    }
  }

  void operator()(const WhitespaceStep&) {
    for (const Words::Range& word : from_.ranges) {
      copy(word, "");
      const std::string& text = to_.text.text();
      size_t begin = begin_;
      for (size_t at = begin_; at < text.size();) {
        const DecodedCharacter c = decode_utf8(std::string_view(text).substr(at));
        const size_t end = at + c.size_bytes;
        if (is_white_space(c.code_point)) {
          add(begin, at);
          begin = end;
        }
        at = end;
      }
      add(begin, text.size());
    }
  }

  void operator()(const SplitStep& step) {
    for (const Words::Range& word : from_.ranges) {
      copy(word, "");
      add_parts(matches_of(step), step.behavior);
    }
  }

  void operator()(const CharacterSplitStep& step) {
    for (const Words::Range& word : from_.ranges) {
      copy(word, "");
      add_parts(matches_of(step), step.behavior);
    }
  }

  void operator()(const WordStep&) {
    enum class Kind { kSpace, kWord, kOther };
    for (const Words::Range& word : from_.ranges) {
      copy(word, "");
      const std::string& text = to_.text.text();
      size_t begin = begin_;
      Kind last = Kind::kSpace;
      for (size_t at = begin_; at < text.size();) {
        const DecodedCharacter c = decode_utf8(std::string_view(text).substr(at));
        const Kind kind = is_word_character(c.code_point) ? Kind::kWord
                          : is_white_space(c.code_point)  ? Kind::kSpace
                                                          : Kind::kOther;
        if (kind != last) {
          if (last != Kind::kSpace) add(begin, at);
          begin = at;
          last = kind;
        }
        at += c.size_bytes;
      }
      if (last != Kind::kSpace) add(begin, text.size());
    }
  }

 private:
  struct Match {
    size_t begin, end;
    bool is_match;
  };

  // Appends a word of `from_`, whose first byte is then at begin_.
  void copy(const Words::Range& word, std::string_view prefix) {
    begin_ = to_.text.size();
    append_with_prefix(from_.text, word.first, word.second, prefix, to_.text);
  }
  void add(size_t begin, size_t end) {
    if (begin < end) to_.ranges.emplace_back(begin, end);
  }
  void cut_before_each(const std::string& delimiter) {
    const std::string& text = to_.text.text();
    size_t begin = begin_;
    for (size_t at = text.find(delimiter, begin_); at != std::string::npos;
         at = text.find(delimiter, at + delimiter.size())) {
      add(begin, at);
      begin = at;
    }
    add(begin, text.size());
  }

  std::vector<Match> matches_of(const SplitStep& step) const {
    std::vector<Match> matches;
    const auto add_match = [&](size_t begin, size_t end, bool is_match) {
      if (begin < end) matches.push_back({begin, end, is_match != step.is_inverted});
    };
    const std::string& text = to_.text.text();
    size_t begin = begin_;
    for (size_t at = text.find(step.pattern, begin_); at != std::string::npos;
         at = text.find(step.pattern, begin)) {
      add_match(begin, at, false);
      begin = at + step.pattern.size();
      add_match(at, begin, true);
    }
    add_match(begin, text.size(), false);
    return matches;
  }
  std::vector<Match> matches_of(const CharacterSplitStep& step) const {
    std::vector<Match> matches;
    const std::string& text = to_.text.text();
    for (size_t at = begin_; at < text.size();) {
      const DecodedCharacter c = decode_utf8(std::string_view(text).substr(at));
      const size_t end = at + c.size_bytes;
      const bool is_match = is_of(step.kind, c.code_point);
      if (!is_match && !matches.empty() && !matches.back().is_match) {
        matches.back().end = end;
      } else {
        matches.push_back({at, end, is_match});
      }
      at = end;
    }
    return matches;
  }
  void add_parts(std::vector<Match> matches, SplitStep::Behavior behavior) {
    using Behavior = SplitStep::Behavior;
    const bool from_end = behavior == Behavior::kMergedWithNext;
    if (from_end) std::reverse(matches.begin(), matches.end());
    std::vector<Words::Range> parts;
    bool was_match = false;
    for (const Match& match : matches) {
      const bool merges =
          !parts.empty() && ((behavior == Behavior::kContiguous && match.is_match == was_match) ||
                             ((from_end || behavior == Behavior::kMergedWithPrevious) &&
                              match.is_match && !was_match));
      if (merges) {
        parts.back() = {std::min(parts.back().first, match.begin),
                        std::max(parts.back().second, match.end)};
      } else if (behavior != Behavior::kRemoved || !match.is_match) {
        parts.emplace_back(match.begin, match.end);
      }
      was_match = match.is_match;
    }
    if (from_end) std::reverse(parts.begin(), parts.end());
    for (const Words::Range& part : parts) add(part.first, part.second);
  }

  const Words& from_;
  Words& to_;
  size_t begin_ = 0;
};

}  // namespace

void PreTokenizer::apply(Words& words, Words& scratch) const {
  words.ranges.clear();
  if (words.text.size() > 0) words.ranges.emplace_back(0, words.text.size());
  for (const PreTokenizerStep& step : steps_) {
    scratch.text.clear();
    scratch.ranges.clear();
    std::visit(Cutter(words, scratch), step);
    std::swap(words, scratch);
  }
}

bool PreTokenizer::has_byte_symbols() const {
  return adds_prefix_space().has_value();
}

std::optional<bool> PreTokenizer::adds_prefix_space() const {
  for (const PreTokenizerStep& step : steps_) {
    if (const auto* bytes = std::get_if<ByteLevelStep>(&step)) return bytes->adds_prefix_space;
  }
  return std::nullopt;
}

bool PreTokenizer::needs_origins() const {
  return std::any_of(steps_.begin(), steps_.end(), [](const PreTokenizerStep& step) {
    const auto* metaspace = std::get_if<MetaspaceStep>(&step);
    return metaspace != nullptr && metaspace->prefix == MetaspaceStep::Prefix::kFirst;
  });
}

}  // namespace onebit::text
