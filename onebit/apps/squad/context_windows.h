// Overlapping windows over a tokenized paragraph, and which of them has the most context for a
// token.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace onebit::squad {

struct ContextWindow {
  int64_t begin, size;

  bool operator==(const ContextWindow&) const = default;
};

// Windows of at most `longest` of `pieces` tokens, each beginning `stride` after the previous one
// (or at its end, if it is shorter), until one reaches the end. No windows if there are no pieces.
std::vector<ContextWindow> context_windows(int64_t pieces, int64_t longest, int64_t stride);

// The window in which `piece` has the most context: min(tokens to its left, tokens to its right) +
// 0.01 * size of the window; the first of equals.
size_t max_context_window(const std::vector<ContextWindow>& windows, int64_t piece);

}  // namespace onebit::squad
