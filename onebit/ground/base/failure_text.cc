#include "onebit/ground/base/failure_text.h"

#include <filesystem>
#include <new>
#include <stdexcept>
#include <system_error>

#include "onebit/ground/base/error.h"

namespace onebit {
namespace {

std::string text_of(const std::filesystem::filesystem_error& failure) {
  const std::string reason = failure.code().message();
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
    return fmt::format("the system refuses a call: {} ({})", system->code().message(), text);
  }
  if (text.starts_with("[json.exception.")) {
    return "a JSON text is not as expected: " + text.substr(text.find("] ") + 2);
  }
  return text;
}

}  // namespace onebit
