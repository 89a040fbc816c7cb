#include "onebit/ground/base/error.h"

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <new>
#include <stdexcept>
#include <system_error>

namespace onebit {
namespace {

std::atomic<bool> invariants_throw{false};

}  // namespace

void throw_on_broken_invariants() {
  invariants_throw = true;
}

void report_broken_invariant(const char* expression, const char* file, int line) {
  const std::string message =
      fmt::format("onebit: internal error at {}:{}: {} does not hold. Please report this.", file,
                  line, expression);
  if (invariants_throw) throw InternalError(message);
  std::fprintf(stderr, "%s\n", message.c_str());
  std::fflush(stderr);
  std::abort();
}

namespace {

// What a user can do, where the system's own words do not show it.
const char* advice_for(int error) {
  switch (error) {
    case ENOSPC:
      return "the disk is full; free space or choose another place";
    case EDQUOT:
      return "your share of the disk is used up; free space or choose another place";
    case EMFILE:
      return "raise the limit of open files (ulimit -n)";
    default:
      return nullptr;
  }
}

}  // namespace

std::string reason_of(int error) {
  const char* const advice = advice_for(error);
  return advice == nullptr ? std::strerror(error)
                           : fmt::format("{}: {}", std::strerror(error), advice);
}

namespace {

// The advice is for errno, which both categories hold here.
std::string reason_of(const std::error_code& code) {
  const bool is_errno =
      code.category() == std::generic_category() || code.category() == std::system_category();
  return is_errno ? onebit::reason_of(code.value()) : code.message();
}

std::string text_of(const std::filesystem::filesystem_error& failure) {
  const std::string reason = reason_of(failure.code());
  if (!failure.path2().empty()) {
    return fmt::format("{} and {}: {}", failure.path1().string(), failure.path2().string(), reason);
  }
  if (!failure.path1().empty()) return fmt::format("{}: {}", failure.path1().string(), reason);
  return fmt::format("the working folder cannot be used: {}; change to another folder", reason);
}

}  // namespace

std::string failure_text(const std::exception& failure) {
  const std::string text = failure.what();
  if (dynamic_cast<const std::bad_alloc*>(&failure) != nullptr) {
    return "out of memory: the system refuses to give this process more";
  }
  if (dynamic_cast<const std::length_error*>(&failure) != nullptr) {
    return fmt::format("a size that was read or asked for is beyond every memory ({})", text);
  }
  if (const auto* files = dynamic_cast<const std::filesystem::filesystem_error*>(&failure)) {
    return text_of(*files);
  }
  if (const auto* system = dynamic_cast<const std::system_error*>(&failure)) {
    return fmt::format("the system refuses a call: {} ({})", reason_of(system->code()), text);
  }
  if (text.starts_with("[json.exception.")) {
    return "a JSON text is not as expected: " + text.substr(text.find("] ") + 2);
  }
  return text;
}

}  // namespace onebit
