// A shared library that is loaded when the program first calls one of its functions. CUDA's take a
// sixth of a second and 200 MB of every process that is linked with them, whatever it does.
#pragma once

#include <mutex>
#include <string>

namespace onebit {

// Loaded when made, never unloaded. Loading it changes nothing about signals (signal_actions.h).
class SharedLibrary {
 public:
  // `path`: where the library was when the program was built. The loader's own search for the file
  // name goes before it. `remedy`: what to do where neither has it.
  SharedLibrary(const char* path, const char* remedy);

  // The address of a function, or null where the library does not exist or does not have it.
  void* find(const char* function);
  // Why find() first returned null, in one line, or "" if it never has. Valid as long as the
  // library.
  const char* problem();

 private:
  std::string name_;
  void* handle_ = nullptr;
  std::mutex mutex_;
  std::string problem_;  // not changed once it says something
};

// Calls the function `declared` of the library, whose name is `name`, or returns `missing` if there
// is none. The first call finds it for all others.
template <auto declared, class Status, class... Arguments>
Status call_of(SharedLibrary& library, const char* name, Status missing, Arguments... arguments) {
  static const auto found = reinterpret_cast<decltype(declared)>(library.find(name));
  return found == nullptr ? missing : found(arguments...);
}

}  // namespace onebit
