// Decompression of one snappy block, as LevelDB's tables hold them.
// https://github.com/google/snappy/blob/main/format_description.txt
#pragma once

#include <cstddef>
#include <span>
#include <string>

namespace onebit::formats {

// Errors carry `place` and the offset (`base` + position): damaged data, or a claim of more than
// `most_bytes`.
std::string unpack_snappy(std::span<const std::byte> block, size_t most_bytes,
                          const std::string& place, uint64_t base);

}  // namespace onebit::formats
