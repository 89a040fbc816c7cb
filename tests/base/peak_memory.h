// The most memory that this process has had, as the kernel counts it.
#pragma once

#include <malloc.h>

#include <cstddef>
#include <cstdint>
#include <fstream>
#include <memory>
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

// Whether free() leads to the C library, and not to a sanitizer, which keeps blocks for a while and
// has several bytes for each of the program's.
inline bool is_usual_heap() {
  const auto block = std::make_unique_for_overwrite<char[]>(size_t{64} << 20);
  // A compiler may leave out a block that nothing uses.
  volatile char* const used = block.get();
  *used = 1;
  return ::mallinfo2().hblks > 0;
}

}  // namespace onebit
