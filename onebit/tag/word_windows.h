// Overlapping windows over the words of a sentence that is too long for the model, so that every
// word is predicted, in the window where it has most context.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace onebit::tag {

struct WordWindow {
  uint32_t first, words;        // what is read
  uint32_t first_owned, owned;  // what is predicted, among them

  bool operator==(const WordWindow&) const = default;
};

// `starts` are the pieces before each word, and all of them, [words + 1]. A window has at most
// `longest` pieces, but always one word; the next begins about `stride` pieces further, at least
// one word. Of the windows that read a word the first owns it of those in which the smaller of its
// distances to the ends, in pieces, is largest; windows that own none are left out. No windows if
// there are no words.
std::vector<WordWindow> word_windows(std::span<const uint32_t> starts, int64_t longest,
                                     int64_t stride);

}  // namespace onebit::tag
