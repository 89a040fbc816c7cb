// Opens whatever checkpoint people have, by what it is and not by how it is called.
#pragma once

#include <memory>
#include <string>

#include "onebit/base/file.h"
#include "onebit/formats/tensor_source.h"

namespace onebit::formats {

enum class CheckpointKind {
  kSafetensors,   // FILE, or a folder with model.safetensors or its index
  kTorch,         // FILE of torch.save, or a folder with pytorch_model.bin
  kTensorBundle,  // PREFIX or PREFIX.index, or a folder with one .index
  kDeepSpeed,     // a folder with `latest`, its tag folder, or mp_rank_00_model_states.pt
};

std::string_view name_of(CheckpointKind kind);

struct OpenedCheckpoint {
  std::shared_ptr<const TensorSource> tensors;  // under the names of the file
  CheckpointKind kind{};
  // Where config.json and vocab.txt may stand beside it.
  Path folder;
};

// Errors: nothing there, nothing known, more than one candidate in a folder, a DeepSpeed model in
// several model-parallel parts.
OpenedCheckpoint open_checkpoint(const Path& path);

}  // namespace onebit::formats
