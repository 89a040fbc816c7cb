#include "onebit/program/serve/heap.h"

#include <malloc.h>

namespace onebit::serve {

void return_large_blocks() {
  constexpr int kLargeBytes = 1 << 20;
  // Either call ends the growth of both limits, which follow the largest block so far.
  ::mallopt(M_MMAP_THRESHOLD, kLargeBytes);
  ::mallopt(M_TRIM_THRESHOLD, kLargeBytes);
}

void return_free_memory(size_t body_bytes) {
  constexpr size_t kFewBytes = size_t{128} << 10;
  if (body_bytes >= kFewBytes) ::malloc_trim(0);
}

}  // namespace onebit::serve
