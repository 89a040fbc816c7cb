// Reading safetensors: one file, or several with an index. Files stay mapped; nothing is copied
// until a tensor is read.
#pragma once

#include <memory>
#include <utility>
#include <vector>

#include "onebit/base/file.h"
#include "onebit/formats/safetensors_header.h"
#include "onebit/formats/tensor_source.h"

namespace onebit::formats {

class SafetensorsFile : public TensorSource {
 public:
  // Errors: see safetensors_header.h.
  explicit SafetensorsFile(const Path& path);

  // Where a tensor's elements stand in the file.
  SafetensorsSpan span(size_t index) const { return spans_[index]; }
  // "__metadata__", as {"format", "pt"}.
  const std::vector<std::pair<std::string, std::string>>& metadata() const { return metadata_; }

 private:
  std::span<const std::byte> readable_bytes(size_t index,
                                            std::vector<std::byte>& scratch) const override;

  MappedFile file_;
  std::vector<SafetensorsSpan> spans_;
  std::vector<std::pair<std::string, std::string>> metadata_;
};

// `model.safetensors.index.json`: {"weight_map": {"name": "model-00001-of-00002.safetensors",
// ...}}.
class ShardedSafetensors : public TensorSource {
 public:
  // Errors: a shard outside the index's folder or missing; a name the index gives to a shard that
  // lacks it; a tensor that the index does not name.
  explicit ShardedSafetensors(const Path& index_path);

  size_t shards() const { return shards_.size(); }

 private:
  std::span<const std::byte> readable_bytes(size_t index,
                                            std::vector<std::byte>& scratch) const override;

  std::vector<std::unique_ptr<SafetensorsFile>> shards_;
  std::vector<std::pair<size_t, size_t>> where_;  // (shard, index in it), one an entry
};

}  // namespace onebit::formats
