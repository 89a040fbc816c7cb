// Errors of the command line itself: one way to report them, one exit status.
#pragma once

#include <exception>
#include <stdexcept>
#include <string>

namespace CLI {
class App;
}

namespace onebit::commands {

// Exit statuses of the program. A wrong command line is a usage error. A missing file, a recipe
// that does not fit, anything that goes wrong later is a failure.
inline constexpr int kSuccess = 0;
inline constexpr int kFailure = 1;
inline constexpr int kUsageError = 2;

// Thrown before any work for errors that the command line alone shows.
class UsageError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// The type name of options whose value, a file or folder, is read by every rank. `onebit launch`
// compares these inputs across hosts, and stores of pre-training data (pretrain_command.h).
inline constexpr const char* kInput = "INPUT";

// The error message, with the nearest command or option. Here and below, `error` is a UsageError or
// an exception of CLI11.
std::string explanation(const CLI::App& program, const std::exception& error);
// Error: an option has another option as its value, so its own value is missing.
void require_values(const CLI::App& program);

// Prints help or version if `error` requests them. Otherwise one line with the error and the
// nearest command or option, and one that names the command's --help. Returns the exit status.
// Ranks above 0 of a launcher print nothing and wait for rank 0, since all have the same command
// line.
int end_of_parsing(const CLI::App& program, const std::exception& error);

// Text for --help about files that may be packed (corpus/byte_stream.h reads them).
inline constexpr const char* kPlainOrPacked = "plain or packed: .gz, .xz, .zst, .bz2, .lz4";

}  // namespace onebit::commands
