// Overlapping windows over the words of a sentence that is too long for the model. Every word is
// predicted in the window where it has the most context.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace onebit::tag {

struct WordWindow {
  uint32_t first, words;        // that the model reads
  uint32_t first_owned, owned;  // those of them that it predicts

  bool operator==(const WordWindow&) const = default;
};

// `starts` is the number of pieces before each word, and in all, [words + 1]. A window has at most
// `longest` pieces, but at least one word; the next begins about `stride` pieces later, at least
// one word. Of the windows with a word, the one in which the smaller of the word's distances to the
// ends, in pieces, is largest owns it (the first of equals); windows that own none are left out. No
// windows if there are no words.
std::vector<WordWindow> word_windows(std::span<const uint32_t> starts, int64_t longest,
                                     int64_t stride);

}  // namespace onebit::tag
