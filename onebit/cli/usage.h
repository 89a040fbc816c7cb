// Errors of the command line itself: one way to report them, one exit status.
#pragma once

#include <exception>
#include <stdexcept>
#include <string>

namespace CLI {
class App;
}

namespace onebit::cli {

// Exit statuses of the program. A wrong command line is a usage error; a missing file, a recipe
// that does not fit, anything that goes wrong later is a failure.
inline constexpr int kSuccess = 0, kFailure = 1, kUsageError = 2;

// Thrown before any work for errors that the command line alone shows.
class UsageError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// The type name of options whose value is read by every rank: a file or folder, with a name or
// weight if the command allows one. `onebit launch` compares these inputs across hosts.
inline constexpr const char* kInput = "INPUT";
// The same for a value that must be a store of pre-training data.
inline constexpr const char* kStore = "STORE";

// The error message, with the nearest command or option. Here and below, `error` is a UsageError or
// an exception of CLI11.
std::string explanation(const CLI::App& program, const std::exception& error);
// Error: an option has another option as its value, so its own value is missing.
void require_values(const CLI::App& program);

// Prints help or version if `error` requests them; otherwise one line with the error and the
// nearest command or option, and one that names the command's --help. Returns the exit status.
// Ranks above 0 of a launcher print nothing and wait for rank 0, since all have the same command
// line.
int end_of_parsing(const CLI::App& program, const std::exception& error);

}  // namespace onebit::cli
