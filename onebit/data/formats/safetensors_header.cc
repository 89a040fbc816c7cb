#include "onebit/data/formats/safetensors_header.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <numeric>
#include <string_view>

#include "onebit/data/formats/quote.h"
#include "onebit/data/formats/safetensors_sax.h"
#include "onebit/ground/base/error.h"

namespace onebit::formats {
namespace {

struct FileDType {
  std::string_view name;
  uint64_t size_bytes;
  DType dtype;
  bool is_read;
};

constexpr FileDType kDTypes[] = {
    {"F32", 4, DType::kF32, true},     {"BF16", 2, DType::kBF16, true},
    {"F16", 2, DType::kF16, true},     {"F64", 8, DType::kF64, true},
    {"I64", 8, DType::kI64, true},     {"I32", 4, DType::kI32, true},
    {"U8", 1, DType::kU8, true},       {"U16", 2, DType::kU16, true},
    {"U32", 4, DType::kU32, true},     {"U64", 8, DType::kU64, true},
    {"BOOL", 1, DType::kU8, false},    {"I8", 1, DType::kU8, false},
    {"I16", 2, DType::kU16, false},    {"C64", 8, DType::kU64, false},
    {"F8_E4M3", 1, DType::kU8, false}, {"F8_E5M2", 1, DType::kU8, false},
    {"F8_E8M0", 1, DType::kU8, false},
};

const FileDType& dtype_named(const SafetensorsTensor& tensor, const std::string& place) {
  for (const FileDType& candidate : kDTypes) {
    if (candidate.name == tensor.dtype) return candidate;
  }
  fail("{}: tensor {} has the unknown element type {}", place, quote(tensor.name),
       quote(tensor.dtype));
}

// Elements of the tensor. Error: the shape implies more than 2^63 bytes (ignoring zeros, so that no
// product of extents ever overflows).
uint64_t elements_of(const SafetensorsTensor& tensor, uint64_t element_bytes,
                     const std::string& place) {
  uint64_t elements = 1;
  bool is_empty = false;
  const uint64_t most = uint64_t{std::numeric_limits<int64_t>::max()} / element_bytes;
  for (const uint64_t extent : tensor.shape) {
    is_empty = is_empty || extent == 0;
    if (extent == 0) continue;
    require(elements <= most / extent, "{}: tensor {}: the shape [{}] is too large", place,
            quote(tensor.name), fmt::join(tensor.shape, ", "));
    elements *= extent;
  }
  return is_empty ? 0 : elements;
}

TensorEntry entry_of(const SafetensorsTensor& tensor, const std::string& place) {
  const FileDType& dtype = dtype_named(tensor, place);
  const uint64_t elements = elements_of(tensor, dtype.size_bytes, place);
  require(tensor.begin <= tensor.end && tensor.end - tensor.begin == elements * dtype.size_bytes,
          "{}: tensor {}: data_offsets [{}, {}] do not match {} elements of {}", place,
          quote(tensor.name), tensor.begin, tensor.end, elements, dtype.name);
  TensorEntry entry{tensor.name, dtype.dtype, {}};
  if (tensor.shape.size() > Shape::kMaxRank) {
    entry.shape = Shape{static_cast<int64_t>(elements)};
    entry.unreadable =
        fmt::format("it has {} axes, at most {} are read", tensor.shape.size(), Shape::kMaxRank);
    return entry;
  }
  for (const uint64_t extent : tensor.shape) {
    entry.shape.append(static_cast<int64_t>(extent));
  }
  if (!dtype.is_read)
    entry.unreadable = fmt::format("elements of type {} are not read", dtype.name);
  return entry;
}

std::string_view header_text(std::span<const std::byte> front, uint64_t file_bytes,
                             const std::string& place) {
  require(file_bytes >= 8, "{}: not a safetensors file: it has {} bytes, at least 8 are needed",
          place, file_bytes);
  uint64_t length = 0;
  std::memcpy(&length, front.data(), sizeof length);
  require(length <= kMaxSafetensorsHeaderBytes,
          "{}: offset 0: not a safetensors file: it claims a header of {} bytes (at most {})",
          place, length, kMaxSafetensorsHeaderBytes);
  require(length <= file_bytes - 8,
          "{}: offset 0: the header of {} bytes exceeds the file of {} bytes; it is cut short",
          place, length, file_bytes);
  ONEBIT_INVARIANT(length <= front.size() - 8);
  const std::string_view text(reinterpret_cast<const char*>(front.data()) + 8, length);
  require(!text.empty() && text.front() == '{',
          "{}: offset 8: not a safetensors file: the header must start with '{{'", place);
  // A JSON parser treats it as the end of the text and ignores everything after it.
  const size_t zero = text.find('\0');
  require(zero == std::string_view::npos, "{}: offset {}: the header contains a zero byte", place,
          8 + (zero == std::string_view::npos ? 0 : zero));
  return text;
}

}  // namespace

SafetensorsHeader parse_safetensors_header(std::span<const std::byte> file,
                                           const std::string& place) {
  return parse_safetensors_header(file, file.size(), place);
}

SafetensorsHeader parse_safetensors_header(std::span<const std::byte> front, uint64_t file_bytes,
                                           const std::string& place) {
  const std::string_view text = header_text(front, file_bytes, place);
  SafetensorsHeader header;
  std::vector<SafetensorsTensor> tensors = parse_safetensors_json(text, place, header.metadata);
  std::stable_sort(tensors.begin(), tensors.end(), [](const auto& a, const auto& b) {
    return std::pair(a.begin, a.end) < std::pair(b.begin, b.end);
  });
  const uint64_t data_begin = 8 + text.size();
  uint64_t expected = 0;
  for (const SafetensorsTensor& tensor : tensors) {
    header.entries.push_back(entry_of(tensor, place));
    require(tensor.begin == expected,
            "{}: offset {}: tensor {} begins there, but the data before it ends at {} ({})", place,
            data_begin + tensor.begin, quote(tensor.name), data_begin + expected,
            tensor.begin > expected ? "a hole" : "an overlap");
    require(tensor.end <= file_bytes - data_begin,
            "{}: tensor {} ends at offset {}, beyond the file of {} bytes; it is cut short", place,
            quote(tensor.name), data_begin + tensor.end, file_bytes);
    header.spans.push_back({data_begin + tensor.begin, data_begin + tensor.end});
    expected = tensor.end;
  }
  require(data_begin + expected == file_bytes,
          "{}: offset {}: {} bytes after the last tensor; the file is damaged", place,
          data_begin + expected, file_bytes - data_begin - expected);
  return header;
}

size_t checksum_offset(std::string_view header) {
  const std::string before = fmt::format("\"{}\":\"", kChecksumKey);
  const size_t at = header.find(before);
  if (at == std::string_view::npos) return at;
  const size_t offset = at + before.size();
  return offset + kUnknownChecksum.size() <= header.size() ? offset : std::string_view::npos;
}

}  // namespace onebit::formats
