// Reads files of torch.save: today's zip archive and the stream of 2016-2020. Tensors stay in the
// mapped file. torch/serialization.py of PyTorch describes both.
#pragma once

#include <atomic>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "onebit/data/formats/pickle_objects.h"
#include "onebit/data/formats/tensor_source.h"
#include "onebit/ground/base/file.h"

namespace onebit::formats {

// The range of a storage's elements, in bytes from the start of the file.
struct TorchSpan {
  uint64_t begin = 0, end = 0;
  uint32_t crc32 = 0;  // 0: the file has none
};

class TorchFile : public TensorSource {
 public:
  // Reads the tensors of the state dict: the root itself, or the value of its key "module"
  // (DeepSpeed), "model_state_dict", "state_dict" or "model". Members that are not tensors are
  // listed as unreadable. Errors (path, offset, reason): a damaged file, a pickle that names
  // anything other than tensors and plain containers, no state dict, big-endian data.
  explicit TorchFile(const Path& path);

  // The key of the state dict, or "" for the root.
  const std::string& key() const { return key_; }

  // Recognise the format by the first bytes.
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

  // Error: the storage does not match its checksum. Computed once per storage, at the first call.
  void verify(size_t storage) const;

  MappedFile file_;
  std::string path_, key_;
  std::vector<TorchSpan> spans_;  // one per storage
  std::unique_ptr<std::atomic<bool>[]> verified_;
  std::vector<TorchTensor> tensors_;  // one per entry
};

}  // namespace onebit::formats
