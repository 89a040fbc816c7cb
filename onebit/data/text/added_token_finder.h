// Added tokens, and where they are in a text, by the rules of Hugging Face's `tokenizers`:
//
// - Tokens that are not `normalized` are looked for first, in the text as it is written. The others
//   are looked for in the normal form of what is left between them.
// - The leftmost token is taken, of several at one place the longest. The search goes on behind it.
// - A `single_word` token beside a letter, digit, mark or underscore is passed over, and so is what
//   it covers.
// - A token with `lstrip` or `rstrip` covers the white space beside it.
//
// Letters are as in the ICU library's version of Unicode.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "onebit/data/text/characters.h"
#include "onebit/data/text/normal_form.h"
#include "onebit/ground/base/json_fwd.h"

namespace onebit::text {

// Tokens that a tokenizer has beside its model: they are found in the text before it is split into
// words. Hugging Face calls them added tokens. The special tokens are among them.
struct AddedToken {
  int32_t id = 0;
  std::string content;
  bool single_word = false;  // not found inside a word
  bool lstrip = false;       // takes the white space before it
  bool rstrip = false;       // takes the white space after it
  bool normalized = false;   // its normal form is looked for in the normal form of the text
  bool special = false;      // represents no text

  bool operator==(const AddedToken&) const = default;
};

// Whether such a token is found wherever its content stands in the text as it is written.
bool is_found_as_written(const AddedToken& token);

// The member of tokenizer.json's `added_tokens` for this token.
Json added_token_json(const AddedToken& token);
// Reads the settings of such an object, without `id`. Errors: no content, an unknown key.
AddedToken read_added_token(JsonReader& reader);

// Gives added tokens that `tokens` has several times the id that counts, whichever the list has.
void take_last_ids(const std::vector<std::string>& tokens, std::vector<AddedToken>& added);

using ByteRange = NormalizedWord::Range;

// A token, or a piece of text between tokens.
struct Segment {
  static constexpr int32_t kText = -1;

  size_t begin, end;
  int32_t id;  // kText, or the token's
};

// The patterns of tokens in ascending order: patterns with a common beginning are neighbours.
class TokenPatterns {
 public:
  // Of equal patterns the first counts, as in `tokenizers`. Call sort() once, behind the last.
  void add(std::string text, const AddedToken& token);
  void sort();
  bool empty() const { return patterns_.empty(); }

  // Overwrites `segments` with the tokens in `text` and what lies between.
  void find(std::string_view text, std::vector<Segment>& segments) const;

 private:
  struct Pattern {
    std::string text;
    AddedToken token;
  };
  // The longest pattern at the front of `text`, or null.
  const Pattern* longest_at(std::string_view text) const;

  std::vector<Pattern> patterns_;
  std::array<uint32_t, 257> first_{};  // by first byte, where its patterns begin
};

class Vocabulary;

class AddedTokenFinder {
 public:
  // Finds the added tokens of a vocabulary. Null if it is plain.
  static std::shared_ptr<const AddedTokenFinder> of(const Vocabulary& vocabulary, Casing casing);
  // Error: a token whose normal form is empty.
  AddedTokenFinder(const std::vector<AddedToken>& tokens, const Characters& characters);

  // Calls token(id, begin, end) and text(part, normal, at) for the segments of `utf8`, in order:
  // `part` is text of `utf8` at byte `at` if `normal` is null, else it is at byte `at` of
  // normal->text, whose origin is counted from normal->begin.
  struct Normal {
    const NormalizedText& text;
    size_t begin;
  };
  // The bytes of `utf8` from which bytes [begin, end) of a part at `at` come.
  static ByteRange origin(const Normal* normal, size_t at, size_t begin, size_t end) {
    if (normal == nullptr) {
      return {static_cast<uint32_t>(at + begin), static_cast<uint32_t>(at + end)};
    }
    const ByteRange range = normal->text.raw_range(at + begin, at + end);
    const auto first = static_cast<uint32_t>(normal->begin);
    return {first + range.begin, first + range.end};
  }
  template <typename OnText, typename OnToken>
  void split(std::string_view utf8, const OnText& text, const OnToken& token) const {
    std::vector<Segment> outer, inner;
    NormalizedText normal;
    written_.find(utf8, outer);
    for (const Segment& one : outer) {
      const std::string_view part = utf8.substr(one.begin, one.end - one.begin);
      if (one.id != Segment::kText) {
        token(one.id, one.begin, one.end);
        continue;
      }
      if (!normalized_.empty()) {
        normal.assign(part, characters_);
        normalized_.find(normal.text(), inner);
      }
      if (normalized_.empty() || is_only_text(inner)) {
        text(part, static_cast<const Normal*>(nullptr), one.begin);
        continue;
      }
      const Normal of{normal, one.begin};
      for (const Segment& two : inner) {
        if (two.id == Segment::kText) {
          text(std::string_view(normal.text()).substr(two.begin, two.end - two.begin), &of,
               two.begin);
        } else {
          const ByteRange range = normal.raw_range(two.begin, two.end);
          token(two.id, one.begin + range.begin, one.begin + range.end);
        }
      }
    }
  }

 private:
  static bool is_only_text(const std::vector<Segment>& segments) {
    return segments.empty() || (segments.size() == 1 && segments[0].id == Segment::kText);
  }

  TokenPatterns written_, normalized_;
  const Characters& characters_;
};

}  // namespace onebit::text
