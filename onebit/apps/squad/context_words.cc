#include "onebit/apps/squad/context_words.h"

#include <algorithm>

#include "onebit/data/text/utf8.h"
#include "onebit/ground/base/error.h"

namespace onebit::squad {

namespace {

constexpr std::string_view kNarrowSpace = "\xE2\x80\xAF";  // U+202F

// Length of the separator at the front, or 0 if there is none.
size_t separator_bytes(std::string_view text) {
  if (text.starts_with(kNarrowSpace)) return kNarrowSpace.size();
  return !text.empty() && std::string_view(" \t\r\n").find(text[0]) != std::string_view::npos;
}

}  // namespace

ContextWords::ContextWords(std::string_view context) : context_(context) {
  bool in_word = false;
  for (size_t at = 0; at < context.size();) {
    const size_t separator = separator_bytes(context.substr(at));
    if (separator > 0) {
      in_word = false;
      at += separator;
      continue;
    }
    const auto byte = static_cast<uint32_t>(at);
    if (!in_word) words_.push_back({byte, byte});
    in_word = true;
    words_.back().end = static_cast<uint32_t>(++at);
  }
}

std::string_view ContextWords::word(int32_t index) const {
  const Word& word = words_[static_cast<size_t>(index)];
  return context_.substr(word.begin, word.end - word.begin);
}

int32_t ContextWords::word_at(size_t byte) const {
  const auto after =
      std::upper_bound(words_.begin(), words_.end(), byte,
                       [](size_t value, const Word& word) { return value < word.begin; });
  return static_cast<int32_t>(after - words_.begin()) - 1;
}

size_t ContextWords::text_begin(size_t begin, size_t end) const {
  for (size_t at = begin; at < end;) {
    const size_t separator = separator_bytes(context_.substr(at));
    if (separator == 0) return at;
    at += separator;
  }
  return begin;
}

std::string ContextWords::joined(int32_t first, int32_t last) const {
  ONEBIT_INVARIANT(first >= 0 && last < size());
  std::string text;
  for (int32_t index = first; index <= last; ++index) {
    if (index > first) text += ' ';
    text += word(index);
  }
  return text;
}

size_t byte_of_code_point(std::string_view text, int64_t count) {
  size_t at = 0;
  for (; count > 0; --count) {
    if (at >= text.size()) return std::string_view::npos;
    at += text::decode_utf8(text.substr(at)).size_bytes;
  }
  return count < 0 ? std::string_view::npos : at;
}

std::vector<ContextWindow> context_windows(int64_t pieces, int64_t longest, int64_t stride) {
  std::vector<ContextWindow> windows;
  for (int64_t begin = 0; begin < pieces;) {
    const int64_t size = std::min(pieces - begin, longest);
    windows.push_back({begin, size});
    if (begin + size == pieces) break;
    begin += std::min(size, stride);
  }
  return windows;
}

size_t max_context_window(const std::vector<ContextWindow>& windows, int64_t piece) {
  size_t best = 0;
  double best_score = -1;
  for (size_t i = 0; i < windows.size(); ++i) {
    const int64_t left = piece - windows[i].begin;
    const int64_t right = windows[i].begin + windows[i].size - 1 - piece;
    if (left < 0 || right < 0) continue;
    const double score =
        static_cast<double>(std::min(left, right)) + 0.01 * static_cast<double>(windows[i].size);
    if (score > best_score) {
      best = i;
      best_score = score;
    }
  }
  return best;
}

}  // namespace onebit::squad
