// Reads a safetensors file. The file stays mapped. Nothing is copied until a tensor is read.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "onebit/data/formats/safetensors_header.h"
#include "onebit/data/formats/tensor_source.h"
#include "onebit/ground/base/file.h"

namespace onebit::formats {

class SafetensorsFile : public TensorSource {
 public:
  // Errors: see safetensors_header.h.
  explicit SafetensorsFile(const Path& path);

  // The range of a tensor's elements in the file.
  SafetensorsSpan span(size_t index) const { return spans_[index]; }
  void verify_checksum() const override;
  // The checksum in the file, absent if it has none: eight hexadecimal digits unless damaged.
  std::optional<std::string> stated_checksum() const;
  // "__metadata__" in pairs such as {"format", "pt"}.
  const std::vector<std::pair<std::string, std::string>>& metadata() const { return metadata_; }

 private:
  std::span<const std::byte> readable_bytes(size_t index,
                                            std::vector<std::byte>& scratch) const override;

  MappedFile file_;
  std::vector<SafetensorsSpan> spans_;
  std::vector<std::pair<std::string, std::string>> metadata_;
};

}  // namespace onebit::formats
