#include "onebit/data/formats/safetensors.h"

#include <algorithm>
#include <cstring>

#include "onebit/ground/base/crc32c.h"
#include "onebit/ground/base/error.h"
#include "onebit/ground/base/printable.h"

namespace onebit::formats {

SafetensorsFile::SafetensorsFile(const Path& path) : file_(path) {
  SafetensorsHeader header = parse_safetensors_header(file_.bytes(), path.string());
  spans_ = std::move(header.spans);
  metadata_ = std::move(header.metadata);
  set_entries(path.string(), std::move(header.entries));
}

std::optional<std::string> SafetensorsFile::stated_checksum() const {
  const auto stated = std::find_if(metadata_.begin(), metadata_.end(),
                                   [](const auto& item) { return item.first == kChecksumKey; });
  if (stated == metadata_.end()) return std::nullopt;
  return stated->second;
}

void SafetensorsFile::verify_checksum() const {
  const std::optional<std::string> stated = stated_checksum();
  if (!stated) return;
  const std::span<const std::byte> all = file_.bytes();
  uint64_t length = 0;
  std::memcpy(&length, all.data(), sizeof length);
  const auto header_bytes = static_cast<size_t>(sizeof length + length);
  std::string header(reinterpret_cast<const char*>(all.data()), header_bytes);
  const size_t offset = checksum_offset(header);
  require(offset != std::string::npos,
          "{}: {} in __metadata__ is {}, not as onebit writes it; a program that "
          "writes the file again must leave it out",
          place(), kChecksumKey, quote(*stated));
  header.replace(offset, kUnknownChecksum.size(), kUnknownChecksum);
  const uint32_t front = crc32c(header.data(), header.size());
  const std::span<const std::byte> data = all.subspan(header_bytes);
  const std::string found = fmt::format("{:08x}", crc32c(data.data(), data.size(), front));
  require(
      found == *stated,
      "{}: damaged: its checksum is {}, {} was written; take another copy of the file (a program "
      "that writes it again must leave {} out of __metadata__)",
      place(), found, quote(*stated), kChecksumKey);
}

std::span<const std::byte> SafetensorsFile::readable_bytes(size_t index,
                                                           std::vector<std::byte>&) const {
  return file_.bytes().subspan(spans_[index].begin, spans_[index].end - spans_[index].begin);
}

}  // namespace onebit::formats
