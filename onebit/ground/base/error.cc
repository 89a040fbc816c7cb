#include "onebit/ground/base/error.h"

#include <cstdio>
#include <cstdlib>

namespace onebit {

void abort_on_broken_invariant(const char* expression, const char* file, int line) {
  std::fprintf(stderr, "onebit: internal error at %s:%d: %s does not hold. Please report this.\n",
               file, line, expression);
  std::fflush(stderr);
  std::abort();
}

}  // namespace onebit
