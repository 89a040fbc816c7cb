#include "onebit/ground/base/shared_library.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include <filesystem>

#include "onebit/ground/base/signal_actions.h"

namespace onebit {

SharedLibrary::SharedLibrary(const char* path, const char* remedy)
    : name_(std::filesystem::path(path).filename()) {
  const KeptSignalActions kept;
  handle_ = dlopen(name_.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (handle_ != nullptr) return;
  std::string reason = dlerror();
  handle_ = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (handle_ != nullptr) return;
  if (std::filesystem::exists(path)) reason = dlerror();
  problem_ = fmt::format("{}; {}", reason, remedy);
}

void* SharedLibrary::find(const char* function) {
  void* const found = handle_ == nullptr ? nullptr : dlsym(handle_, function);
  if (found == nullptr) {
    const std::lock_guard lock(mutex_);
    if (problem_.empty()) {
      problem_ = fmt::format("{} has no {}: it is of another version than the one built with",
                             name_, function);
    }
  }
  return found;
}

const char* SharedLibrary::problem() {
  const std::lock_guard lock(mutex_);
  return problem_.empty() ? "" : problem_.c_str();
}

}  // namespace onebit
