#include <cstring>

#include "onebit/ground/base/crc32c.h"

namespace onebit {
namespace {

__attribute__((target("sse4.2"))) uint32_t crc32c_by_instruction(const void* data,
                                                                 size_t size_bytes, uint32_t crc) {
  const auto* bytes = static_cast<const unsigned char*>(data);
  uint64_t state = ~crc;
  for (; size_bytes >= 8; bytes += 8, size_bytes -= 8) {
    uint64_t word;
    std::memcpy(&word, bytes, sizeof word);
    state = __builtin_ia32_crc32di(state, word);
  }
  uint32_t last = static_cast<uint32_t>(state);
  for (; size_bytes > 0; ++bytes, --size_bytes) last = __builtin_ia32_crc32qi(last, *bytes);
  return ~last;
}

}  // namespace

// 7.7 GB/s with the instruction, 1.1 with tables (in the same minute).
uint32_t crc32c(const void* data, size_t size_bytes, uint32_t crc) {
  static const bool has_instruction = __builtin_cpu_supports("sse4.2") != 0;
  return has_instruction ? crc32c_by_instruction(data, size_bytes, crc)
                         : crc32c_by_tables(data, size_bytes, crc);
}

}  // namespace onebit
