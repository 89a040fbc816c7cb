// Files of torch.save: today's zip archive and the stream of 2016-2020. Tensors stay in the mapped
// file. torch/serialization.py of PyTorch describes both.
#pragma once

#include <atomic>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "onebit/base/file.h"
#include "onebit/formats/pickle_value.h"
#include "onebit/formats/tensor_source.h"

namespace onebit::formats {

// The range of a storage's elements, in bytes from the start of the file.
struct TorchSpan {
  uint64_t begin = 0, end = 0;
  uint32_t crc32 = 0;  // 0: none was computed
};

class TorchFile : public TensorSource {
 public:
  // Takes the tensors of the state dict: the root itself, or what it holds under "module"
  // (DeepSpeed), "model_state_dict", "state_dict" or "model". Members that are no tensors are
  // listed as unreadable. Errors (path, offset, reason): a damaged file; a pickle that names
  // anything but tensors and plain containers; no state dict; big-endian data.
  explicit TorchFile(const Path& path);

  // The key the state dict was found under, empty for the root.
  const std::string& key() const { return key_; }

  // By the first bytes.
  static bool is_zip(std::span<const std::byte> file);
  static bool is_stream(std::span<const std::byte> file);

 private:
  std::span<const std::byte> readable_bytes(size_t index,
                                            std::vector<std::byte>& scratch) const override;
  Pickle open_zip();
  Pickle open_stream();
  const PickleValue& state_dict(const Pickle& pickle);
  void add_entries(const Pickle& pickle, const PickleValue& dict);
  TensorEntry entry_of(const Pickle& pickle, std::string_view name,
                       const TorchTensor& tensor) const;

  // Error: the storage does not fit its checksum. Computed at the first call for each.
  void verify(size_t storage) const;

  MappedFile file_;
  std::string path_, key_;
  std::vector<TorchSpan> spans_;  // one a storage
  std::unique_ptr<std::atomic<bool>[]> verified_;
  std::vector<TorchTensor> tensors_;  // one an entry
};

}  // namespace onebit::formats
