// The words of a SQuAD paragraph as the published readers split it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace onebit::squad {

// Words are split at space, tab, CR, LF and U+202F, and at no other white space.
class ContextWords {
 public:
  explicit ContextWords(std::string_view context);

  int32_t size() const { return static_cast<int32_t>(words_.size()); }
  std::string_view word(int32_t index) const;
  // The word that contains this byte; a separator belongs to the word before it. -1 before the
  // first.
  int32_t word_at(size_t byte) const;
  // Words first to last (inclusive) with single spaces between them.
  std::string joined(int32_t first, int32_t last) const;

 private:
  struct Word {
    uint32_t begin, end;
  };

  std::string_view context_;
  std::vector<Word> words_;
};

// The byte at which code point `count` begins; text.size() for the one after the last, npos beyond.
size_t byte_of_code_point(std::string_view text, int64_t count);

}  // namespace onebit::squad
