// The header of a safetensors file: 8 bytes of length (little-endian), then that many bytes of
// JSON,
// {"name": {"dtype": "F32", "shape": [2, 3], "data_offsets": [0, 24]}, ..., "__metadata__": {...}},
// then the data. https://github.com/huggingface/safetensors, "Format".
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "onebit/data/formats/tensor_source.h"

namespace onebit::formats {

inline constexpr uint64_t kMaxSafetensorsHeaderBytes = 100'000'000;

// The key in "__metadata__" of files that we write: the CRC-32C of the file, eight hexadecimal
// digits, computed with zeros in their place.
inline constexpr const char* kChecksumKey = "onebit.crc32c";
inline constexpr std::string_view kUnknownChecksum = "00000000";
// The offset of the checksum's digits in a header that onebit wrote, or npos if there are none or
// the header ends within them.
size_t checksum_offset(std::string_view header);

struct SafetensorsSpan {
  uint64_t begin = 0, end = 0;  // bytes from the start of the file
};

struct SafetensorsHeader {
  std::vector<TensorEntry> entries;                           // by position in the file
  std::vector<SafetensorsSpan> spans;                         // one per entry
  std::vector<std::pair<std::string, std::string>> metadata;  // "__metadata__"
};

// Checks everything the format promises: lengths, key set, element types and sizes, that the data
// covers the rest of the file without a hole or an overlap, unique names. Errors state `place` (the
// path), the offset or the tensor, and the reason. Memory remains a small multiple of the header.
SafetensorsHeader parse_safetensors_header(std::span<const std::byte> file,
                                           const std::string& place);
// The same for a file of `file_bytes` bytes, of which only `front` is given: length and JSON.
SafetensorsHeader parse_safetensors_header(std::span<const std::byte> front, uint64_t file_bytes,
                                           const std::string& place);

}  // namespace onebit::formats
