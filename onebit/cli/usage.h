// What is wrong with the command line itself: one way to say it, one exit status.
#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <string>

namespace onebit::cli {

// Exit statuses of the program. A command line that cannot be meant is a usage error; a file that
// is not there, a recipe that does not fit, anything that goes wrong later is a failure.
inline constexpr int kSuccess = 0, kFailure = 1, kUsageError = 2;

// Thrown before any work for what a command line alone shows to be wrong.
class UsageError : public CLI::ValidationError {
 public:
  explicit UsageError(const std::string& message) : CLI::ValidationError(message) {}
};

// Whole numbers from `least` on.
CLI::Validator at_least(int64_t least);

// Prints help or version where `error` stands for them; else one line with what is wrong, with the
// nearest command or option, and one that names the --help of the command. Returns the exit status.
// Ranks above 0 of a launcher say nothing and leave rank 0 the time to: all have the same command
// line.
int end_of_parsing(const CLI::App& program, const CLI::ParseError& error);

}  // namespace onebit::cli
