// CRC-32C (Castagnoli, reflected polynomial 0x82F63B78), the checksum of TensorFlow's records and
// bundles and of LevelDB's tables.
#pragma once

#include <cstddef>
#include <cstdint>

namespace onebit {

// Continues from `crc`, which is 0 at the beginning.
uint32_t crc32c(const void* data, size_t size_bytes, uint32_t crc = 0);
// The table-driven version, for processors without a CRC-32C instruction.
uint32_t crc32c_by_tables(const void* data, size_t size_bytes, uint32_t crc = 0);

// The form in which those files store a CRC: a CRC over data that contains CRCs is weak, so stored
// ones are rotated and offset.
inline uint32_t mask_crc32c(uint32_t crc) {
  return ((crc >> 15) | (crc << 17)) + 0xA282EAD8u;
}

}  // namespace onebit
