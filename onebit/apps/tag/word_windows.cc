#include "onebit/apps/tag/word_windows.h"

#include <algorithm>

#include "onebit/ground/base/error.h"

namespace onebit::tag {
namespace {

// The index after the last word that fits.
size_t end_of(std::span<const uint32_t> starts, size_t first, int64_t longest) {
  const auto behind = std::upper_bound(starts.begin() + static_cast<ptrdiff_t>(first) + 1,
                                       starts.end(), starts[first] + longest);
  return std::max(first + 1, static_cast<size_t>(behind - starts.begin()) - 1);
}

// The first word that has more context in `later` than in `earlier`: the distances to compare are
// those to the end of `earlier` and to the beginning of `later`.
size_t first_better(std::span<const uint32_t> starts, const WordWindow& earlier,
                    const WordWindow& later) {
  const size_t end = earlier.first + earlier.words;
  const uint64_t sum = uint64_t{starts[end]} + starts[later.first];
  size_t word = later.first;
  while (word < end && uint64_t{starts[word]} + starts[word + 1] <= sum) ++word;
  return word;
}

}  // namespace

std::vector<WordWindow> word_windows(std::span<const uint32_t> starts, int64_t longest,
                                     int64_t stride) {
  ONEBIT_INVARIANT(!starts.empty() && longest >= 1 && stride >= 1);
  const size_t words = starts.size() - 1;
  std::vector<WordWindow> read;
  for (size_t first = 0; first < words;) {
    const size_t end = end_of(starts, first, longest);
    // A window that ends where the last one does has less context for each of its words.
    const bool adds = read.empty() || end > read.back().first + read.back().words;
    if (adds)
      read.push_back({static_cast<uint32_t>(first), static_cast<uint32_t>(end - first), 0, 0});
    if (end == words) break;
    const auto next =
        static_cast<size_t>(std::upper_bound(starts.begin(), starts.end(), starts[first] + stride) -
                            starts.begin() - 1);
    first = std::clamp(next, first + 1, end);
  }
  std::vector<WordWindow> windows;
  size_t owned = 0;
  for (size_t i = 0; i < read.size(); ++i) {
    const size_t behind = i + 1 < read.size() ? first_better(starts, read[i], read[i + 1]) : words;
    if (behind <= owned) continue;
    read[i].first_owned = static_cast<uint32_t>(owned);
    read[i].owned = static_cast<uint32_t>(behind - owned);
    windows.push_back(read[i]);
    owned = behind;
  }
  return windows;
}

}  // namespace onebit::tag
