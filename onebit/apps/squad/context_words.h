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
  // The word that contains this byte. A separator belongs to the word before it. -1 before the
  // first.
  int32_t word_at(size_t byte) const;
  // The first byte of [begin, end) that is not of a separator, or `begin` if all are.
  size_t text_begin(size_t begin, size_t end) const;
  // Words first to last (inclusive) with single spaces between them.
  std::string joined(int32_t first, int32_t last) const;

 private:
  struct Word {
    uint32_t begin, end;
  };

  std::string_view context_;
  std::vector<Word> words_;
};

// The byte at which code point `count` begins. It is text.size() for the one after the last, npos
// beyond.
size_t byte_of_code_point(std::string_view text, int64_t count);

// Overlapping windows over a tokenized paragraph, and which of them has the most context for a
// token.
struct ContextWindow {
  int64_t begin, size;

  bool operator==(const ContextWindow&) const = default;
};

// Windows of at most `longest` of `pieces` tokens, each beginning `stride` after the previous one
// (or at its end, if it is shorter), until one reaches the end. No windows if there are no pieces.
std::vector<ContextWindow> context_windows(int64_t pieces, int64_t longest, int64_t stride);

// The window in which `piece` has the most context: min(tokens to its left, tokens to its right) +
// 0.01 * size of the window. The first of equals.
size_t max_context_window(const std::vector<ContextWindow>& windows, int64_t piece);

}  // namespace onebit::squad
