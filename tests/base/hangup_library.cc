// A library that handles SIGHUP from when it is loaded, as UCX does. Its handler ends the process
// with a status that shows it.
#include <signal.h>
#include <unistd.h>

namespace {

[[gnu::constructor]] void handle_hangup() {
  ::signal(SIGHUP, [](int) { ::_exit(99); });
}

}  // namespace
