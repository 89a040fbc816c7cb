// Two kinds of failure. Wrong input or environment throws onebit::Error with a message that states
// what, where and how to fix it. A broken invariant of our code aborts with its place, or throws
// InternalError inside of a host program.
#pragma once

#include <fmt/format.h>

#include <stdexcept>
#include <string>
#include <utility>

namespace onebit {

// Wrong input, configuration or environment. what() is one complete message for the user.
class Error : public std::runtime_error {
 public:
  explicit Error(const std::string& message) : std::runtime_error(message) {}
};

// Throws Error with the formatted message.
template <typename... Args>
[[noreturn]] void fail(fmt::format_string<Args...> format, Args&&... args) {
  throw Error(fmt::format(format, std::forward<Args>(args)...));
}

// Throws Error with the formatted message unless `condition` holds.
template <typename... Args>
void require(bool condition, fmt::format_string<Args...> format, Args&&... args) {
  if (!condition) fail(format, std::forward<Args>(args)...);
}

// A broken invariant of onebit's own code.
class InternalError : public std::logic_error {
 public:
  using std::logic_error::logic_error;
};

// Broken invariants throw InternalError from now on, instead of ending the process. For a host, for
// example a Python interpreter, whose user would lose the work of hours. The object whose invariant
// is broken must not be used again.
void throw_on_broken_invariants();

[[noreturn]] void report_broken_invariant(const char* expression, const char* file, int line);

}  // namespace onebit

// Checks a condition that only a bug in onebit can break.
#define ONEBIT_INVARIANT(expression) \
  ((expression) ? void(0) : ::onebit::report_broken_invariant(#expression, __FILE__, __LINE__))
