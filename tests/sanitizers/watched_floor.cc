#include "tests/sanitizers/watched_floor.h"

#include "tests/sanitizers/read_at.h"

namespace onebit {

int read_past_the_end() {
  const std::vector<int> values(4, 1);
  return read_at(values, 4);
}

}  // namespace onebit
