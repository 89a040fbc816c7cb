// A range of the elements of a flat buffer.
#pragma once

#include <cstdint>

namespace onebit {

struct Range {
  int64_t begin = 0, end = 0;  // elements [begin, end)

  int64_t elements() const { return end - begin; }
  bool operator==(const Range&) const = default;
};

}  // namespace onebit
