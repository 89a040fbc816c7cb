#include "onebit/ground/base/ignored_signal.h"

#include <signal.h>

namespace onebit {

bool is_ignored(int signal) {
  struct sigaction action {};
  return ::sigaction(signal, nullptr, &action) == 0 && action.sa_handler == SIG_IGN;
}

}  // namespace onebit
