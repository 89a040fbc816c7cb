#include "onebit/data/corpus/crc32.h"

#include <zlib.h>

namespace onebit::corpus {

uint32_t crc32_of(const void* data, size_t size_bytes, uint32_t crc) {
  return static_cast<uint32_t>(crc32_z(crc, static_cast<const Bytef*>(data), size_bytes));
}

uint32_t crc32_joined(uint32_t first, uint32_t second, uint64_t second_bytes) {
  return static_cast<uint32_t>(crc32_combine(first, second, static_cast<z_off_t>(second_bytes)));
}

}  // namespace onebit::corpus
