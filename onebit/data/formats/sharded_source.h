// Tensors spread over several files, listed in an index: model.safetensors.index.json,
// pytorch_model.bin.index.json. {"weight_map": {"name": "model-00001-of-00002.safetensors", ...}}.
#pragma once

#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "onebit/data/formats/tensor_source.h"
#include "onebit/ground/base/file.h"

namespace onebit::formats {

class ShardedSource : public TensorSource {
 public:
  using Opener = std::function<std::shared_ptr<const TensorSource>(const Path&)>;

  // `open` opens one file. Errors: a shard outside the index's folder or missing, a name that the
  // index assigns to a shard that lacks it, a tensor that the index does not name.
  ShardedSource(const Path& index_path, const Opener& open);

  size_t shards() const { return shards_.size(); }
  void verify_checksum() const override;

 private:
  std::span<const std::byte> readable_bytes(size_t index,
                                            std::vector<std::byte>& scratch) const override;

  std::vector<std::shared_ptr<const TensorSource>> shards_;
  std::vector<std::pair<size_t, size_t>> where_;  // (shard, index in it), one per entry
};

// Opens an index whose files are safetensors.
std::shared_ptr<const TensorSource> open_sharded_safetensors(const Path& index_path);

}  // namespace onebit::formats
