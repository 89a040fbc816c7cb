#include "onebit/program/cli/inherited_state.h"

#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <string>
#include <system_error>

#include "onebit/ground/base/error.h"
#include "onebit/ground/base/log.h"
#include "onebit/ground/base/signal_actions.h"
#include "onebit/training/commands/usage.h"

namespace onebit::cli {

namespace {

struct Inherited {
  bool is_known;
  struct sigaction action;
};

constinit std::array<Inherited, kEndingSignals.size()> inherited{};

void record_signals(int, char**, char**) {
  for (size_t i = 0; i < inherited.size(); ++i) {
    inherited[i].is_known = ::sigaction(kEndingSignals[i], nullptr, &inherited[i].action) == 0;
  }
}

// Only functions of this section run before the libraries'. A C library that does not know the
// section calls none, and nothing is restored.
[[gnu::section(".preinit_array"),
  gnu::used]] void (*const kBeforeLibraries)(int, char**, char**) = record_signals;

}  // namespace

void restore_inherited_signals() {
  for (size_t i = 0; i < inherited.size(); ++i) {
    if (inherited[i].is_known) ::sigaction(kEndingSignals[i], &inherited[i].action, nullptr);
  }
}

void ignore_file_size_signal() {
  ::signal(SIGXFSZ, SIG_IGN);
}

void open_missing_streams() {
  for (int stream = STDIN_FILENO; stream <= STDERR_FILENO; ++stream) {
    if (::fcntl(stream, F_GETFD) != -1 || errno != EBADF) continue;
    // The lowest free number is the stream's. It is opened the wrong way round, so that its use
    // fails.
    const int wrong = stream == STDIN_FILENO ? O_WRONLY : O_RDONLY;
    if (::open("/dev/null", wrong) != stream) return;
  }
}

namespace {

bool output_has_failed() {
  return std::ferror(stdout) != 0;
}

// Of the write that failed. 0: not known.
int output_error = 0;

}  // namespace

bool repeats_output_failure(const std::exception& failure) {
  if (!output_has_failed()) return false;
  const auto* of_system = dynamic_cast<const std::system_error*>(&failure);
  if (of_system != nullptr) output_error = of_system->code().value();
  return true;
}

int status_with_output(int status) {
  const bool failed_before = output_has_failed();
  CallResult written = std::fflush(stdout) == 0;
  // Network file systems report a full disk when a file is closed. Output that was never written to
  // does not matter.
  if (!written.failed() && !failed_before) {
    const int copy = ::dup(STDOUT_FILENO);
    if (copy >= 0) written = ::close(copy);
  }
  if (!written.failed() && !failed_before) return status;
  if (written.failed()) output_error = written.error();
  const std::string reason = output_error != 0 ? ": " + reason_of(output_error) : "";
  log_error("standard output cannot be written{}", reason);
  return status == commands::kSuccess ? commands::kFailure : status;
}

}  // namespace onebit::cli
