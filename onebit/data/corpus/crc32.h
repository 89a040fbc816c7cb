// CRC-32 as in zlib and gzip, for ranges of any size.
#pragma once

#include <cstddef>
#include <cstdint>

namespace onebit::corpus {

// Continues from `crc`, which is 0 at the beginning.
uint32_t crc32_of(const void* data, size_t size_bytes, uint32_t crc = 0);
// The checksum of two concatenated ranges, the second of which has `second_bytes` bytes.
uint32_t crc32_joined(uint32_t first, uint32_t second, uint64_t second_bytes);

}  // namespace onebit::corpus
