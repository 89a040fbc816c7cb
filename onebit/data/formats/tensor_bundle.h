// Reads TensorFlow's checkpoints of version 2: PREFIX.index, a table of names, and
// PREFIX.data-00000-of-00001 (or several), the tensors one after the other. TensorFlow,
// core/protobuf/tensor_bundle.proto and core/util/tensor_bundle.
#pragma once

#include <string>
#include <vector>

#include "onebit/data/formats/tensor_source.h"
#include "onebit/ground/base/file.h"

namespace onebit::formats {

class TensorBundle : public TensorSource {
 public:
  // `path` is the prefix ("bert_model.ckpt") or the .index file. Tensors of text, of other
  // unsupported types and those stored in slices are listed as unreadable. Errors (path, offset,
  // reason): a shard missing or short, big-endian data, a damaged table.
  explicit TensorBundle(const Path& path);

  size_t shards() const { return shards_.size(); }

 private:
  struct Where {
    size_t shard = 0;
    uint64_t begin = 0, end = 0;  // in its shard
    uint32_t masked_crc = 0;
  };
  struct Builder;

  // Error: the tensor does not match its checksum.
  std::span<const std::byte> readable_bytes(size_t index,
                                            std::vector<std::byte>& scratch) const override;

  std::vector<MappedFile> shards_;
  std::vector<Where> where_;  // one per entry
};

}  // namespace onebit::formats
