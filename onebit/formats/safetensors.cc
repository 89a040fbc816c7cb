#include "onebit/formats/safetensors.h"

#include <algorithm>

#include "onebit/base/crc32c.h"
#include "onebit/base/error.h"

namespace onebit::formats {

SafetensorsFile::SafetensorsFile(const Path& path) : file_(path) {
  SafetensorsHeader header = parse_safetensors_header(file_.bytes(), path.string());
  spans_ = std::move(header.spans);
  metadata_ = std::move(header.metadata);
  set_entries(path.string(), std::move(header.entries));
  verify_checksum();
}

void SafetensorsFile::verify_checksum() const {
  const auto stated = std::find_if(metadata_.begin(), metadata_.end(),
                                   [](const auto& item) { return item.first == kDataChecksumKey; });
  if (stated == metadata_.end()) return;
  uint64_t data_bytes = 0;
  for (const SafetensorsSpan& span : spans_) data_bytes += span.end - span.begin;
  const std::span<const std::byte> data = file_.bytes().last(data_bytes);
  const std::string found = fmt::format("{:08x}", crc32c(data.data(), data.size()));
  require(found == stated->second,
          "{}: damaged: the checksum of its data is {}, {} was written ({} in __metadata__, to be "
          "left out by a program that changes tensors); take another copy of it",
          place(), found, stated->second, kDataChecksumKey);
}

std::span<const std::byte> SafetensorsFile::readable_bytes(size_t index,
                                                           std::vector<std::byte>&) const {
  return file_.bytes().subspan(spans_[index].begin, spans_[index].end - spans_[index].begin);
}

}  // namespace onebit::formats
