// Reads a file in parts of bounded size, so that memory does not depend on the size of the file. A
// part is computed at once, because its items are sorted by length.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

namespace onebit::finetune {

struct PartLimits {
  size_t items;
  size_t size;  // the sum of sizes at which a part ends in any case
};

// Calls work(std::span<const Item>) for one part after the other. next(item) fills in a new item,
// and returns false after the last one.
template <typename Item, typename Next, typename SizeOf, typename Work>
void for_each_part(const PartLimits& limits, const Next& next, const SizeOf& size_of,
                   const Work& work) {
  std::vector<Item> part;
  for (bool is_last = false; !is_last;) {
    part.clear();
    for (size_t size = 0; part.size() < limits.items && size < limits.size;) {
      is_last = !next(part.emplace_back());
      if (is_last) {
        part.pop_back();
        break;
      }
      size += size_of(part.back());
    }
    if (!part.empty()) work(std::span<const Item>(part));
  }
}

}  // namespace onebit::finetune
