// Loops over parts of a range whose bodies receive the number of their part, and thus their scratch
// memory.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>

#include "onebit/math/device/context.h"

namespace onebit::kernels {

// The number of parts into which for_parts divides `count` items if a thread should get `grain`.
inline int64_t part_count(const Context& context, int64_t count, int64_t grain) {
  return std::clamp<int64_t>(count / std::max<int64_t>(grain, 1), 1, context.threads());
}

// Calls body(part, begin, end) for consecutive parts of [0, count), in parallel. Never allocates.
template <class Body>
void for_parts(const Context& context, int64_t count, int64_t grain, const Body& body) {
  const int64_t parts = part_count(context, count, grain);
  const auto run = [&](int64_t first, int64_t last) {
    for (int64_t part = first; part < last; ++part) {
      const int64_t begin = count * part / parts, end = count * (part + 1) / parts;
      if (begin < end) body(part, begin, end);
    }
  };
  context.parallel_for(parts, 1, std::ref(run));
}

// The grain with which a thread has at least 16384 elements if an item has `item_elements`.
inline int64_t grain_for(int64_t item_elements) {
  return std::max<int64_t>(1, 16384 / std::max<int64_t>(item_elements, 1));
}

}  // namespace onebit::kernels
