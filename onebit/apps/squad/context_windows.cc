#include "onebit/apps/squad/context_windows.h"

#include <algorithm>

namespace onebit::squad {

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
