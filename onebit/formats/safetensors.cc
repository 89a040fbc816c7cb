#include "onebit/formats/safetensors.h"

namespace onebit::formats {

SafetensorsFile::SafetensorsFile(const Path& path) : file_(path) {
  SafetensorsHeader header = parse_safetensors_header(file_.bytes(), path.string());
  spans_ = std::move(header.spans);
  metadata_ = std::move(header.metadata);
  set_entries(path.string(), std::move(header.entries));
}

std::span<const std::byte> SafetensorsFile::readable_bytes(size_t index,
                                                           std::vector<std::byte>&) const {
  return file_.bytes().subspan(spans_[index].begin, spans_[index].end - spans_[index].begin);
}

}  // namespace onebit::formats
