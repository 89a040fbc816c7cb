// Writing safetensors, header first, then tensor after tensor: no more than one tensor need be in
// memory. `__metadata__` is {"format": "pt"}, which transformers asks for, and the file's checksum
// (safetensors_header.h).
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "onebit/base/file.h"
#include "onebit/formats/tensor_source.h"
#include "onebit/tensor/view.h"

namespace onebit::formats {

// What `__metadata__` has besides: keys and values.
using FileMetadata = std::vector<std::pair<std::string, std::string>>;

class SafetensorsWriter {
 public:
  // `entries` in writing order, element sizes never growing, so that every tensor is aligned.
  // Errors: a name twice, a reserved name, the file cannot be made. Unless finish() is reached the
  // file is removed.
  SafetensorsWriter(const Path& path, std::vector<TensorEntry> entries,
                    const FileMetadata& metadata = {});

  // The next entry's elements, contiguous, in one or several pieces.
  void write(std::span<const std::byte> bytes);
  // After the last byte of the last entry. Syncs to the disk.
  void finish();

 private:
  FileWriter file_;
  std::string place_;
  uint64_t expected_bytes_ = 0, written_bytes_ = 0, checksum_offset_ = 0;
  uint32_t crc32c_ = 0;
};

struct NamedTensor {
  std::string name;
  ConstView values;  // on the CPU
};

// All at once, in the order given (larger element types first).
void write_safetensors(const Path& path, std::vector<NamedTensor> tensors,
                       const FileMetadata& metadata = {});

// Every tensor of `source`, floating-point ones as `dtype` (absent: as they are, f64 as f32).
// Errors: see TensorSource::bytes; a finite value that `dtype` cannot hold; a tensor of another
// kind.
void write_safetensors(const Path& path, const TensorSource& source, std::optional<DType> dtype,
                       const FileMetadata& metadata = {});

}  // namespace onebit::formats
