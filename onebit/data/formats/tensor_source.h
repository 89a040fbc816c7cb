// A set of named tensors to read from, independent of the file format, so that models are loaded by
// the same code from all formats.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "onebit/ground/base/dtype.h"
#include "onebit/ground/base/file.h"

namespace onebit::formats {

struct TensorEntry {
  std::string name;
  DType dtype = DType::kF32;
  Shape shape;
  // Why the values cannot be read (an unsupported element type or rank), else empty. Such an entry
  // is listed, so that it shows up as unexpected, and refused when it is read.
  std::string unreadable = {};

  int64_t size_bytes() const { return shape.elements() * size_bytes_of(dtype); }
};

struct ByteRange {
  size_t begin = 0, size_bytes = 0;
};

// Gives the whole pages of `read`, a part of a mapped file, back to the system: while they are
// mapped they count as memory of the process. A later access reads them again.
void drop_pages(std::span<const std::byte> read);

class TensorSource {
 public:
  virtual ~TensorSource() = default;

  // The path, for errors.
  const std::string& place() const { return place_; }
  // In the order of the file. Names are unique.
  const std::vector<TensorEntry>& entries() const { return entries_; }
  std::optional<size_t> find(std::string_view name) const;
  // Error: no such tensor. The message suggests the nearest name.
  size_t index_of(std::string_view name) const;

  // The elements, contiguous and row-major, little-endian. The result points into the mapped file
  // if the elements are stored like this, otherwise into `scratch`, which is filled. It is not
  // always aligned to the element size. Errors: unreadable entry, damaged data.
  std::span<const std::byte> bytes(size_t index, std::vector<std::byte>& scratch) const;

  // Reads the whole file if the format has a checksum of the whole. Error: it differs.
  virtual void verify_checksum() const {}

  // Reads f32, bf16, f16 or f64 elements as f32. Errors: `to` is not as long as the tensor, any
  // other type, a number beyond f32.
  void read_f32(size_t index, std::span<float> to) const;
  // Reads the elements from `begin` on, as many as fit into `to`. Error: the tensor is shorter.
  void read_f32(size_t index, int64_t begin, std::span<float> to) const;

 protected:
  TensorSource() = default;
  TensorSource(const TensorSource&) = default;
  TensorSource& operator=(const TensorSource&) = default;
  // Error: a duplicate name.
  void set_entries(std::string place, std::vector<TensorEntry> entries);
  virtual std::span<const std::byte> readable_bytes(size_t index,
                                                    std::vector<std::byte>& scratch) const = 0;
  // The bytes `range` of the elements, for sources that need not fetch the whole tensor.
  virtual std::span<const std::byte> readable_part(size_t index, ByteRange range,
                                                   std::vector<std::byte>& scratch) const;

 private:
  const TensorEntry& readable_entry(size_t index) const;

  std::string place_;
  std::vector<TensorEntry> entries_;
  std::unordered_map<std::string, size_t> index_;
};

// Tensors spread over several files, listed in an index: model.safetensors.index.json,
// pytorch_model.bin.index.json. {"weight_map": {"name": "model-00001-of-00002.safetensors", ...}}.
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

// Compares the tensors of a file with those that a model needs. Strict: no tensor remains random or
// is left out silently.
struct WantedTensor {
  std::string name;
  Shape shape;
};

// Differences that a load allows. A name is covered if it begins with one of the prefixes.
struct MatchRules {
  std::vector<std::string> may_lack;    // wanted, may be absent: a new task head ("qa_outputs.")
  std::vector<std::string> may_ignore;  // present, not wanted: another task's head ("cls.")
  // Wanted, and treated as absent even if the file has a tensor of this name: a head with other
  // labels.
  std::vector<std::string> replaced = {};
};

struct MatchReport {
  struct WrongShape {
    std::string name;
    Shape wanted, found;
  };
  std::vector<std::string> missing, unexpected;  // errors
  std::vector<WrongShape> wrong_shape;           // errors
  std::vector<std::string> lacking, ignored;     // covered by the rules: to be logged

  bool ok() const { return missing.empty() && unexpected.empty() && wrong_shape.empty(); }
  // Several lines naming every tensor of the first three lists (long lists are cut, with a count).
  std::string describe() const;
};

MatchReport match_tensors(std::span<const TensorEntry> found, std::span<const WantedTensor> wanted,
                          const MatchRules& rules);

// Returns the report if it is ok(). Error: it is not. The message is `place` and describe().
MatchReport require_match(const TensorSource& source, std::span<const WantedTensor> wanted,
                          const MatchRules& rules);

}  // namespace onebit::formats
