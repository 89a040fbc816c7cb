#include "onebit/formats/open_checkpoint.h"

#include <algorithm>
#include <vector>

#include "onebit/base/error.h"
#include "onebit/formats/hugging_face_folder.h"
#include "onebit/formats/quote.h"
#include "onebit/formats/safetensors.h"
#include "onebit/formats/tensor_bundle.h"
#include "onebit/formats/torch_file.h"

namespace onebit::formats {
namespace {

namespace files = std::filesystem;

constexpr std::string_view kFirstPart = "mp_rank_00_model_states.pt";
constexpr const char* kKnown =
    "known are a Hugging Face folder, a file of safetensors or torch.save, the prefix of a "
    "TensorFlow "
    "checkpoint, a DeepSpeed folder or its mp_rank_00_model_states.pt";

OpenedCheckpoint opened(std::shared_ptr<const TensorSource> tensors, CheckpointKind kind,
                        Path folder) {
  return {std::move(tensors), kind, folder.empty() ? Path(".") : std::move(folder)};
}

Path with_suffix(Path path, const char* suffix) {
  path += suffix;
  return path;
}

// The folder of one tag. Its parts other than 00 would hold slices of the layers.
OpenedCheckpoint open_deepspeed_tag(const Path& folder) {
  for (const auto& file : files::directory_iterator(folder)) {
    const std::string name = file.path().filename().string();
    require(
        !name.starts_with("mp_rank_") || !name.ends_with("_model_states.pt") || name == kFirstPart,
        "{}: a model in several model-parallel parts; onebit reads one of a single part ({})",
        file.path().string(), kFirstPart);
  }
  return opened(std::make_shared<TorchFile>(folder / kFirstPart), CheckpointKind::kDeepSpeed,
                folder);
}

// `latest` holds the name of the tag's folder, nothing else.
OpenedCheckpoint open_deepspeed(const Path& folder) {
  std::string tag = read_file(folder / "latest");
  while (!tag.empty() && (tag.back() == '\n' || tag.back() == '\r')) tag.pop_back();
  const bool plain = !tag.empty() && tag != "." && tag != ".." &&
                     tag.find_first_of(std::string_view("/\\\0", 3)) == std::string::npos;
  require(plain && files::is_directory(folder / tag),
          "{}: names the tag {}, which is no folder here", (folder / "latest").string(),
          quote(tag));
  require(files::exists(folder / tag / kFirstPart), "{}: lacks {}", (folder / tag).string(),
          kFirstPart);
  return open_deepspeed_tag(folder / tag);
}

OpenedCheckpoint open_folder(const Path& folder) {
  if (files::exists(folder / "model.safetensors") ||
      files::exists(folder / "model.safetensors.index.json")) {
    return opened(open_hugging_face_tensors(folder), CheckpointKind::kSafetensors, folder);
  }
  if (files::exists(folder / "pytorch_model.bin")) {
    return opened(std::make_shared<TorchFile>(folder / "pytorch_model.bin"), CheckpointKind::kTorch,
                  folder);
  }
  if (files::exists(folder / kFirstPart)) return open_deepspeed_tag(folder);
  if (files::exists(folder / "latest")) return open_deepspeed(folder);
  std::vector<Path> bundles;
  for (const auto& file : files::directory_iterator(folder)) {
    if (file.path().extension() == ".index") bundles.push_back(file.path());
  }
  std::sort(bundles.begin(), bundles.end());
  require(bundles.size() < 2, "{}: holds several TensorFlow checkpoints ({}, {}...); name one",
          folder.string(), bundles.empty() ? "" : bundles[0].filename().string(),
          bundles.size() < 2 ? "" : bundles[1].filename().string());
  require(!bundles.empty(), "{}: no checkpoint in this folder; {}", folder.string(), kKnown);
  return opened(std::make_shared<TensorBundle>(bundles[0]), CheckpointKind::kTensorBundle, folder);
}

OpenedCheckpoint open_file(const Path& path) {
  const Path folder = path.parent_path();
  if (path.extension() == ".index") {
    return opened(std::make_shared<TensorBundle>(path), CheckpointKind::kTensorBundle, folder);
  }
  const MappedFile file(path);
  const auto bytes = file.bytes();
  if (TorchFile::is_zip(bytes) || TorchFile::is_stream(bytes)) {
    const bool deepspeed = path.filename() == kFirstPart;
    return opened(std::make_shared<TorchFile>(path),
                  deepspeed ? CheckpointKind::kDeepSpeed : CheckpointKind::kTorch, folder);
  }
  require(bytes.size() > 8 && static_cast<char>(bytes[8]) == '{',
          "{}: not a checkpoint of a known format; {}", path.string(), kKnown);
  return opened(std::make_shared<SafetensorsFile>(path), CheckpointKind::kSafetensors, folder);
}

}  // namespace

std::string_view name_of(CheckpointKind kind) {
  switch (kind) {
    case CheckpointKind::kSafetensors:
      return "safetensors";
    case CheckpointKind::kTorch:
      return "PyTorch";
    case CheckpointKind::kTensorBundle:
      return "TensorFlow bundle";
    case CheckpointKind::kDeepSpeed:
      return "DeepSpeed";
  }
  return "";
}

OpenedCheckpoint open_checkpoint(const Path& path) {
  if (files::is_directory(path)) return open_folder(path);
  if (files::exists(path)) return open_file(path);
  require(files::exists(with_suffix(path, ".index")), "{}: no such file or folder; {}",
          path.string(), kKnown);
  return opened(std::make_shared<TensorBundle>(path), CheckpointKind::kTensorBundle,
                path.parent_path());
}

}  // namespace onebit::formats
