#include "onebit/ground/base/crc32c.h"

namespace onebit {

uint32_t crc32c(const void* data, size_t size_bytes, uint32_t crc) {
  return crc32c_by_tables(data, size_bytes, crc);
}

}  // namespace onebit
