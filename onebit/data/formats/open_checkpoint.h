// Opens a checkpoint of any supported format, recognised by its content rather than its name.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "onebit/data/formats/families.h"
#include "onebit/data/formats/name_map.h"
#include "onebit/data/formats/tensor_source.h"
#include "onebit/ground/base/file.h"

namespace onebit::formats {

enum class CheckpointKind {
  kSafetensors,   // FILE, or a folder with model.safetensors or its index
  kTorch,         // FILE of torch.save, or a folder with pytorch_model.bin or its index
  kTensorBundle,  // PREFIX or PREFIX.index, or a folder with one .index
  kDeepSpeed,     // a folder with `latest`, its tag folder, or mp_rank_00_model_states.pt
};

std::string_view name_of(CheckpointKind kind);

struct CheckpointFile {
  Path path;
  CheckpointKind kind;
};

struct OpenedCheckpoint {
  std::shared_ptr<const TensorSource> tensors;  // under the names of the file
  CheckpointKind kind{};
  // Folders in which config.json and vocab.txt may be found.
  Path folder;
  // Files of the folder that are checkpoints, too, and were not opened.
  std::vector<CheckpointFile> others = {};
};

// Error: the folder has an adapter of PEFT, with or without the model that it belongs to.
void refuse_adapter(const Path& folder);

// `wanted` (absent: detected) selects one kind if a folder contains several. Errors: no file or
// folder, an unknown format, another kind than wanted, more than one candidate of a kind in a
// folder, a DeepSpeed model in several model-parallel parts.
OpenedCheckpoint open_checkpoint(const Path& path,
                                 std::optional<CheckpointKind> wanted = std::nullopt);

// The checkpoint of a folder under onebit's names, which its config.json tells. Errors: see
// open_checkpoint(), read_encoder_config() and plan_to_ours().
std::shared_ptr<RenamedSource> open_model(const Path& folder);

// The names and shapes of a folder's tensors under onebit's names (plan_to_ours()), without reading
// a value or a checksum. Empty: the folder has no checkpoint.
struct ListedTensors {
  std::string place;
  std::vector<TensorEntry> ours;
};
std::optional<ListedTensors> list_tensors(const Path& folder, const ModelNames& names);

}  // namespace onebit::formats
