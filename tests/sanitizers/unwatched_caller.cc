// Stands for a test: it is compiled without sanitizers and calls the same function of a header as
// the floor.
#include <cstdio>

#include "tests/sanitizers/read_at.h"
#include "tests/sanitizers/watched_floor.h"

int main() {
  const std::vector<int> values(4, 1);
  std::printf("%d, not reported: %d\n", onebit::read_at(values, 3), onebit::read_past_the_end());
  return 0;
}
