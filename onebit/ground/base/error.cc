#include "onebit/ground/base/error.h"

#include <atomic>
#include <cstdio>
#include <cstdlib>

namespace onebit {
namespace {

std::atomic<bool> invariants_throw{false};

}  // namespace

void throw_on_broken_invariants() {
  invariants_throw = true;
}

void report_broken_invariant(const char* expression, const char* file, int line) {
  const std::string message =
      fmt::format("onebit: internal error at {}:{}: {} does not hold. Please report this.", file,
                  line, expression);
  if (invariants_throw) throw InternalError(message);
  std::fprintf(stderr, "%s\n", message.c_str());
  std::fflush(stderr);
  std::abort();
}

}  // namespace onebit
