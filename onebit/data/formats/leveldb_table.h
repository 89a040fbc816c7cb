// Reads a LevelDB table (an "SSTable"), the format of TensorFlow's .index files: sorted keys with
// values, in blocks that may be snappy-compressed, each with a CRC-32C.
// https://github.com/google/leveldb/blob/main/doc/table_format.md
#pragma once

#include <cstddef>
#include <functional>
#include <span>
#include <string>
#include <string_view>

namespace onebit::formats {

// Decompresses one snappy block as contained in LevelDB's tables.
// https://github.com/google/snappy/blob/main/format_description.txt

// Errors state `place` and the offset (`base` + position): damaged data, or a stated size of more
// than `most_bytes`.
std::string unpack_snappy(std::span<const std::byte> block, size_t most_bytes,
                          const std::string& place, uint64_t base);

// Calls `visit` for every entry, keys strictly ascending, with the file's offset of the block that
// contains it (value_offset). Errors state `place`, the offset and the reason.
void read_leveldb_table(std::span<const std::byte> file, const std::string& place,
                        const std::function<void(std::string_view key, std::string_view value,
                                                 uint64_t value_offset)>& visit);

}  // namespace onebit::formats
