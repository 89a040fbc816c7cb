// Helpers of all fuzz targets. A target may throw onebit::Error, as the program does; anything else
// (another exception, a crash, a leak, too much memory or time) is a finding.
#pragma once

#include <sys/mman.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <span>
#include <string_view>

#include "onebit/ground/base/error.h"
#include "onebit/ground/base/file.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);

namespace onebit {

inline std::span<const std::byte> bytes_of(const uint8_t* data, size_t size) {
  return std::as_bytes(std::span(data, size));
}

inline std::string_view text_of(const uint8_t* data, size_t size) {
  return {reinterpret_cast<const char*>(data), size};
}

// A file that lives in memory, for readers that take a path.
class MemoryFile {
 public:
  explicit MemoryFile(std::string_view content) : descriptor_(::memfd_create("input", 0)) {
    if (descriptor_ < 0) std::abort();
    const auto written = ::write(descriptor_, content.data(), content.size());
    if (written != static_cast<ssize_t>(content.size())) std::abort();
  }
  ~MemoryFile() { ::close(descriptor_); }
  MemoryFile(const MemoryFile&) = delete;
  MemoryFile& operator=(const MemoryFile&) = delete;

  Path path() const { return Path("/proc/self/fd") / std::to_string(descriptor_); }

 private:
  int descriptor_;
};

// Runs `action` and ignores Errors.
template <typename Action>
void expect_error_at_most(const Action& action) {
  try {
    action();
  } catch (const Error&) {
  }
}

}  // namespace onebit
