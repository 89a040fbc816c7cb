// A function that a header defines, so that every object that calls it contains a copy.
#pragma once

#include <cstddef>
#include <vector>

namespace onebit {

// Reads beyond the end if `index` is too large.
[[gnu::noinline]] inline int read_at(const std::vector<int>& values, size_t index) {
  return values.data()[index];
}

}  // namespace onebit
