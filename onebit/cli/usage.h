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

// The type name of an option whose value is read by every rank: a file or a folder, with a name or
// a weight beside it where the command says so. `onebit launch` compares these over the hosts.
inline constexpr const char* kInput = "INPUT";
// The same where it must be a store of pre-training data.
inline constexpr const char* kStore = "STORE";

// What is wrong, with the nearest command or option. Here and below, `error` is a UsageError, or
// what CLI11 throws.
std::string explanation(const CLI::App& program, const std::exception& error);
// Error: the value of an option is another option, so its own is missing.
void require_values(const CLI::App& program);

// Prints help or version if `error` asks for them; else one line with what is wrong and the nearest
// command or option, and one that names the command's --help. Returns the exit status. Ranks above
// 0 of a launcher print nothing and wait for rank 0: all have the same command line.
int end_of_parsing(const CLI::App& program, const std::exception& error);

}  // namespace onebit::cli
