// Abbreviations whose full stop does not end a sentence.
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
  // ICU's list for the locale (CLDR suppressions). The English one is corrected: missing titles are
  // added, and everyday words in it ("By.", "Up.") removed. Locales without a list have no
  // abbreviations.
  explicit Abbreviations(const std::string& locale);

  // `word` includes its full stop.
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
  // Indexed by the last byte before the stop, one bit per size in bytes: it rules out most words of
  // a text without a hash.
  std::array<uint64_t, 256> sizes_{};
  size_t longest_bytes_ = 0;
};

}  // namespace onebit::text
