// A compiled map of character sequences to other ones, from a sentencepiece model: Hugging Face's
// normaliser `Precompiled`. Its keys are in a double-array trie (Darts, Yata 2013).
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "onebit/data/text/normal_form.h"

namespace onebit::text {

class CharacterMap {
 public:
  // The bytes of `precompiled_charsmap`: the size of the trie in bytes (32 bits), the trie, and the
  // values, each with a zero byte behind it. Error, without a place: a trie that is cut short or
  // leads out of itself, values that are not UTF-8 or do not end.
  explicit CharacterMap(std::string_view bytes);
  // The same, written in base64.
  static CharacterMap from_base64(std::string_view text);

  // Maps the grapheme clusters of up to five bytes, else their characters (as the reference).
  void apply(const NormalizedText& from, NormalizedText& to) const;

 private:
  // The value of the shortest key at the front of `sequence`, whatever follows in it.
  std::optional<std::string_view> find(std::string_view sequence) const;
  uint32_t unit(uint32_t at) const { return at < trie_.size() ? trie_[at] : 0; }
  void check() const;

  std::vector<uint32_t> trie_;
  std::string values_;
  std::array<bool, 128> maps_ascii_{};
};

}  // namespace onebit::text
