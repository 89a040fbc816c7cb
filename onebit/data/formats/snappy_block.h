// Decompresses one snappy block as contained in LevelDB's tables.
// https://github.com/google/snappy/blob/main/format_description.txt
#pragma once

#include <cstddef>
#include <span>
#include <string>

namespace onebit::formats {

// Errors state `place` and the offset (`base` + position): damaged data, or a stated size of more
// than `most_bytes`.
std::string unpack_snappy(std::span<const std::byte> block, size_t most_bytes,
                          const std::string& place, uint64_t base);

}  // namespace onebit::formats
