#include <sys/prctl.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cstdlib>
#include <exception>
#include <string>
#include <string_view>

#include "onebit/exchange/comm/communicator.h"
#include "onebit/ground/base/error.h"
#include "onebit/ground/base/log.h"
#include "onebit/ground/base/lost_maps.h"
#include "onebit/ground/base/run_event.h"
#include "onebit/program/cli/command_list.h"
#include "onebit/program/cli/inherited_state.h"
#include "onebit/training/commands/recipe_options.h"
#include "onebit/training/commands/usage.h"

namespace {

constexpr const char* kAbout =
    "onebit: pre-train, fine-tune and serve encoders such as BERT, also over slow networks.\n"
    "A first run: onebit prepare, then onebit pretrain, then onebit fill.";

// Between parallel loops GCC's OpenMP lets threads spin for milliseconds. Where other programs or
// ranks use the processors too, they spin on the time of the thread that they wait for: two threads
// beside two busy programs took 33 s for what takes 9 s with this limit. On an idle machine both
// take 4 s. OpenMP reads its environment before main(), so the program starts itself anew, which
// takes as long as a few answers of a small model. A single thread waits for nobody.
void limit_spinning(int argc, char** argv) {
  constexpr const char* kSpinCount = "GOMP_SPINCOUNT";
  for (int i = 1; i < argc; ++i) {
    const std::string_view argument = argv[i];
    const bool is_next = argument == "--threads" && i + 1 < argc;
    if (argument == "--threads=1" || (is_next && std::string_view(argv[i + 1]) == "1")) return;
  }
  if (std::getenv("OMP_WAIT_POLICY") != nullptr || std::getenv(kSpinCount) != nullptr) return;
  setenv(kSpinCount, "2000", 0);
  execv("/proc/self/exe", argv);  // returns only if that is not possible
}

void report_failure(const std::exception& failure) {
  // Printing throws as well: what is reported is that the output cannot be written.
  if (onebit::cli::repeats_output_failure(failure)) return;
  const std::string text = onebit::failure_text(failure);
  onebit::log_error("{}", text);
  // A PeerError repeats the failure of another rank, which reports it itself.
  if (dynamic_cast<const onebit::comm::PeerError*>(&failure) != nullptr) return;
  onebit::report_run_event({.kind = onebit::RunEvent::Kind::kFailed, .text = text});
}

int run_program(int argc, char** argv) {
  onebit::explain_lost_maps();
  CLI::App program(kAbout, "onebit");
  program.set_version_flag("--version", ONEBIT_VERSION);
  program.require_subcommand(1);
  program.fallthrough(false);
  onebit::commands::Action chosen;
  for (const auto add : onebit::cli::kCommands) add(onebit::commands::Command(program), chosen);
  onebit::commands::add_log_level(onebit::commands::Command(program));
  try {
    program.parse(argc, argv);
    onebit::commands::require_values(program);
    return chosen();
  } catch (const CLI::ParseError& error) {
    return onebit::commands::end_of_parsing(program, error);
  } catch (const onebit::commands::UsageError& error) {
    return onebit::commands::end_of_parsing(program, error);
  } catch (const std::exception& error) {
    report_failure(error);
    return onebit::commands::kFailure;
  }
}

}  // namespace

int main(int argc, char** argv) {
  onebit::cli::restore_inherited_signals();
  onebit::cli::open_missing_streams();
  limit_spinning(argc, argv);
  onebit::cli::ignore_file_size_signal();
  // A program that was started as /proc/self/exe is called "exe".
  prctl(PR_SET_NAME, "onebit");
  return onebit::cli::status_with_output(run_program(argc, argv));
}
