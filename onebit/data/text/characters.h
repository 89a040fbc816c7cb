// How the basic tokenizer treats a character, for each casing.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "onebit/data/text/casing.h"
#include "onebit/data/text/unicode_mapping.h"

namespace onebit::text {

enum class CharacterKind : uint8_t {
  kLetter,   // part of a word, also accents, which normalisation may remove
  kSpace,    // ends a word and is dropped
  kSingle,   // ends a word and is a word itself: punctuation, ideographs
  kDropped,  // ignored, does not end a word
};

// The normalised form of a character.
struct NormalForm {
  char32_t code_points[3];
  int size;
};

// The property White_Space of the ICU library's version of Unicode.
bool is_white_space(char32_t code_point);
// The text without such characters at its end.
std::string_view without_spaces_at_end(std::string_view utf8);

class Characters {
 public:
  static const Characters& get(Casing casing);

  CharacterKind kind(char32_t code_point) const {
    return code_point < kTableSize ? kinds_[code_point] : kind_of_high(code_point);
  }
  // Whether BERT's normaliser puts the character between blanks.
  bool is_ideograph(char32_t code_point) const;
  // The normal form of a character that is kLetter or kSingle: empty for an accent in uncased text.
  NormalForm normal_form(char32_t code_point) const;
  // Whether uncased text keeps the mark and canonical ordering may move it.
  bool is_ordered_mark(char32_t code_point) const;
  Casing casing() const { return casing_; }

 private:
  static constexpr char32_t kTableSize = 0x10000;

  explicit Characters(Casing casing);
  CharacterKind kind_of_high(char32_t code_point) const;
  void fill_uncased();
  void fill_lower_case();
  void add_runs(std::span<const MappingRun> runs);
  void add_pairs(std::span<const MappingPair> pairs);
  void add_expansions(std::span<const MappingExpansion> expansions);

  Casing casing_;
  std::vector<CharacterKind> kinds_;
  std::unordered_map<char32_t, NormalForm> mapping_;
};

}  // namespace onebit::text
