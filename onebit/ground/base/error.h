// Two kinds of failure. Wrong input or environment throws onebit::Error with a message that states
// what, where and how to fix it, and a failed system call is one with the reason that the system
// gave. A broken invariant of our code aborts with its place, or throws InternalError inside of a
// host program.
#pragma once

#include <fmt/format.h>

#include <cerrno>
#include <concepts>
#include <exception>
#include <stdexcept>
#include <string>
#include <type_traits>
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

// What a value of errno means.
std::string reason_of(int error);

// What a system call returned, and errno at that moment. Arguments of a function are evaluated in
// any order, and nearly everything may change errno: this is the only way in which a call and its
// reason belong together.
class CallResult {
 public:
  // `result` is the value that the call returned, which is negative if it failed, or says whether
  // it succeeded.
  template <std::integral Result>
  CallResult(Result result) : error_(errno) {
    if constexpr (std::is_same_v<Result, bool>) {
      failed_ = !result;
    } else {
      failed_ = result < 0;
    }
  }

  bool failed() const { return failed_; }
  int error() const { return error_; }

 private:
  int error_;
  bool failed_ = false;
};

// Throws Error with the formatted message and the system's reason if the call has failed:
//   require_call(::fsync(file), "{}: cannot write to the disk", path.string());
template <typename... Args>
void require_call(CallResult result, fmt::format_string<Args...> format, Args&&... args) {
  if (!result.failed()) return;
  throw Error(fmt::format(format, std::forward<Args>(args)...) + ": " + reason_of(result.error()));
}

// The message for the user of any exception: what() of an Error. The texts of the standard library
// and of the JSON library ("std::bad_alloc", "vector::_M_default_append",
// "[json.exception.type_error.302] ...") are translated: they state neither what failed nor what
// helps.
std::string failure_text(const std::exception& failure);

}  // namespace onebit

// Checks a condition that only a bug in onebit can break.
#define ONEBIT_INVARIANT(expression) \
  ((expression) ? void(0) : ::onebit::report_broken_invariant(#expression, __FILE__, __LINE__))
