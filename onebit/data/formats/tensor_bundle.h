// Reads TensorFlow's checkpoints of version 2: PREFIX.index, a table of names, and
// PREFIX.data-00000-of-00001 (or several), the tensors one after the other. TensorFlow,
// core/protobuf/tensor_bundle.proto and core/util/tensor_bundle.
#pragma once

#include <cstddef>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "onebit/data/formats/tensor_source.h"
#include "onebit/ground/base/file.h"

namespace onebit::formats {

// Reads a LevelDB table (an "SSTable"), the format of TensorFlow's .index files: sorted keys with
// values, in blocks that may be snappy-compressed, each with a CRC-32C.
// https://github.com/google/leveldb/blob/main/doc/table_format.md

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
