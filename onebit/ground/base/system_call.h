// Failed system calls as errors, with the reason that the system gave for this call.
#pragma once

#include <cerrno>
#include <concepts>
#include <string>
#include <type_traits>
#include <utility>

#include "onebit/ground/base/error.h"

namespace onebit {

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

}  // namespace onebit
