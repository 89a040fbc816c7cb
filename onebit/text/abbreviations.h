// Abbreviations whose full stop ends no sentence.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <unordered_set>

namespace onebit::text {

class Abbreviations {
 public:
  // The list that ICU carries for the locale (CLDR suppressions), for English mended: titles it
  // lacks are added and everyday words that it holds ("By.", "Up.") taken out. Locales without a
  // list have no abbreviations.
  explicit Abbreviations(const std::string& locale);

  // `word` with its full stop.
  bool contains(std::string_view word) const {
    return (sizes_[last_letter(word)] >> std::min<size_t>(word.size(), 63) & 1) != 0 &&
           words_.find(word) != words_.end();
  }
  size_t longest_bytes() const { return longest_bytes_; }

 private:
  struct Hash {
    using is_transparent = void;
    size_t operator()(std::string_view word) const { return std::hash<std::string_view>{}(word); }
  };
  static uint8_t last_letter(std::string_view word) {
    return word.size() < 2 ? 0 : static_cast<uint8_t>(word[word.size() - 2]);
  }

  std::unordered_set<std::string, Hash, std::equal_to<>> words_;
  // By the last byte before the stop, a bit for every size in bytes: most words of a text are none
  // of these, and need no hash.
  std::array<uint64_t, 256> sizes_{};
  size_t longest_bytes_ = 0;
};

}  // namespace onebit::text
