// The most memory that this process has had, as the kernel counts it.
#pragma once

#include <cstdint>
#include <fstream>
#include <string>

namespace onebit {

// "VmHWM" of the kernel: since the process began, or since clear_peak().
inline int64_t peak_bytes() {
  std::ifstream status("/proc/self/status");
  const std::string name = "VmHWM:";
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with(name)) return 1024 * std::stoll(line.substr(name.size()));
  }
  return 0;
}

// False: the kernel does not do this.
inline bool clear_peak() {
  std::ofstream command("/proc/self/clear_refs");
  command << "5" << std::flush;
  return command.good();
}

}  // namespace onebit
