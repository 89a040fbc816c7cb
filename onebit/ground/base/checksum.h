// Checksums of data, for ranges of any size.
#pragma once

#include <cstddef>
#include <cstdint>

namespace onebit {

// CRC-32 as in zlib and gzip. Continues from `crc`, which is 0 at the beginning.
uint32_t crc32_of(const void* data, size_t size_bytes, uint32_t crc = 0);
// The checksum of two concatenated ranges, the second of which has `second_bytes` bytes.
uint32_t crc32_joined(uint32_t first, uint32_t second, uint64_t second_bytes);

// CRC-32C (Castagnoli, reflected polynomial 0x82F63B78), the checksum of TensorFlow's records and
// bundles and of LevelDB's tables. Continues from `crc`, which is 0 at the beginning.
uint32_t crc32c(const void* data, size_t size_bytes, uint32_t crc = 0);
// The table-driven version, for processors without a CRC-32C instruction.
uint32_t crc32c_by_tables(const void* data, size_t size_bytes, uint32_t crc = 0);

// The form in which those files store a CRC: a CRC over data that contains CRCs is weak, so stored
// ones are rotated and offset.
inline uint32_t mask_crc32c(uint32_t crc) {
  return ((crc >> 15) | (crc << 17)) + 0xA282EAD8u;
}

}  // namespace onebit
