#include "onebit/program/cli/inherited_signals.h"

#include <signal.h>

#include <array>

namespace onebit::cli {
namespace {

struct Inherited {
  int number;
  bool is_known;
  struct sigaction action;
};

constinit std::array<Inherited, 4> inherited = {
    {{SIGHUP, false, {}}, {SIGINT, false, {}}, {SIGTERM, false, {}}, {SIGUSR1, false, {}}}};

void record_signals(int, char**, char**) {
  for (Inherited& one : inherited) {
    one.is_known = ::sigaction(one.number, nullptr, &one.action) == 0;
  }
}

// Only functions of this section run before those of libraries. A C library that does not know the
// section calls none, and nothing is restored.
[[gnu::section(".preinit_array"),
  gnu::used]] void (*const kBeforeLibraries)(int, char**, char**) = record_signals;

}  // namespace

void restore_inherited_signals() {
  for (const Inherited& one : inherited) {
    if (one.is_known) ::sigaction(one.number, &one.action, nullptr);
  }
}

}  // namespace onebit::cli
