// Reads a safetensors file. The file stays mapped. Nothing is copied until a tensor is read.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "onebit/data/formats/safetensors_header.h"
#include "onebit/data/formats/tensor_source.h"
#include "onebit/ground/base/dtype.h"
#include "onebit/ground/base/file.h"
#include "onebit/ground/base/partial_file.h"

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

// Writes safetensors, first the header, then one tensor after the other, so that only one has to be
// in memory. `__metadata__` is {"format": "pt"}, which transformers requires, and the file's
// checksum (safetensors_header.h).

// Additional keys and values of `__metadata__`.
using FileMetadata = std::vector<std::pair<std::string, std::string>>;

class SafetensorsWriter {
 public:
  // `entries` are in writing order with non-increasing element sizes, so that every tensor is
  // aligned. Errors: a duplicate or reserved name, the file cannot be created. Until finish() is
  // reached an existing file keeps its content (PartialFile).
  SafetensorsWriter(const Path& path, std::vector<TensorEntry> entries,
                    const FileMetadata& metadata = {});

  // Writes the next entry's elements, contiguous, in one or several pieces.
  void write(std::span<const std::byte> bytes);
  // Called after the last byte of the last entry. Syncs to disk.
  void finish();

 private:
  PartialFile file_;
  std::string place_;
  uint64_t expected_bytes_ = 0, written_bytes_ = 0, checksum_offset_ = 0;
  uint32_t crc32c_ = 0;
};

// A tensor to write. Its elements are contiguous and on the CPU.
struct NamedTensor {
  template <typename T>
  NamedTensor(std::string name, const T* elements, Shape shape)
      : entry{std::move(name), DTypeOf<T>::value, shape}, data(elements) {}

  TensorEntry entry;
  const void* data;
};

// Writes all tensors, in the order given (larger element types first).
void write_safetensors(const Path& path, std::vector<NamedTensor> tensors,
                       const FileMetadata& metadata = {});

// Writes every tensor of `source`, floating-point ones as `dtype` (if absent: unchanged, but f64 as
// f32). Errors: see TensorSource::bytes, a finite value that `dtype` cannot represent, a tensor of
// another kind.
void write_safetensors(const Path& path, const TensorSource& source, std::optional<DType> dtype,
                       const FileMetadata& metadata = {});

}  // namespace onebit::formats
