#include "onebit/ground/base/checksum.h"

#include <zlib.h>

#include <array>
#include <cstring>

namespace onebit {

uint32_t crc32_of(const void* data, size_t size_bytes, uint32_t crc) {
  return static_cast<uint32_t>(crc32_z(crc, static_cast<const Bytef*>(data), size_bytes));
}

uint32_t crc32_joined(uint32_t first, uint32_t second, uint64_t second_bytes) {
  return static_cast<uint32_t>(crc32_combine(first, second, static_cast<z_off_t>(second_bytes)));
}

namespace {

constexpr uint32_t kPolynomial = 0x82F63B78u;
using Table = std::array<std::array<uint32_t, 256>, 8>;

// table[k][b]: the CRC of byte b followed by k zero bytes ("slicing by 8", Kounavis and Berry
// 2005).
constexpr Table make_table() {
  Table table{};
  for (uint32_t byte = 0; byte < 256; ++byte) {
    uint32_t crc = byte;
    for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1) ^ ((crc & 1u) != 0 ? kPolynomial : 0u);
    table[0][byte] = crc;
  }
  for (size_t zeros = 1; zeros < 8; ++zeros) {
    for (size_t byte = 0; byte < 256; ++byte) {
      const uint32_t shorter = table[zeros - 1][byte];
      table[zeros][byte] = (shorter >> 8) ^ table[0][shorter & 0xFFu];
    }
  }
  return table;
}

constexpr Table kTable = make_table();

}  // namespace

uint32_t crc32c_by_tables(const void* data, size_t size_bytes, uint32_t crc) {
  const auto* bytes = static_cast<const unsigned char*>(data);
  crc = ~crc;
  for (; size_bytes >= 8; bytes += 8, size_bytes -= 8) {
    uint64_t word;
    std::memcpy(&word, bytes, sizeof word);
    word ^= crc;
    crc = 0;
    for (size_t i = 0; i < 8; ++i) crc ^= kTable[7 - i][(word >> (8 * i)) & 0xFFu];
  }
  for (; size_bytes > 0; ++bytes, --size_bytes) {
    crc = (crc >> 8) ^ kTable[0][(crc ^ *bytes) & 0xFFu];
  }
  return ~crc;
}

#if defined(__x86_64__)

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

#else

uint32_t crc32c(const void* data, size_t size_bytes, uint32_t crc) {
  return crc32c_by_tables(data, size_bytes, crc);
}

#endif

}  // namespace onebit
