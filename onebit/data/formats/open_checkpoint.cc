#include "onebit/data/formats/open_checkpoint.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "onebit/data/formats/hugging_face_folder.h"
#include "onebit/data/formats/name_map.h"
#include "onebit/data/formats/safetensors.h"
#include "onebit/data/formats/tensor_bundle.h"
#include "onebit/data/formats/tensor_source.h"
#include "onebit/data/formats/torch_file.h"
#include "onebit/ground/base/error.h"
#include "onebit/ground/base/file.h"
#include "onebit/ground/base/printable.h"

namespace onebit::formats {
namespace {

namespace files = std::filesystem;

constexpr std::string_view kFirstPart = "mp_rank_00_model_states.pt";
constexpr std::string_view kLatest = "latest";
constexpr uint64_t kMaxTagBytes = 4096;
// The names searched in a folder, in order of preference. Bundles may have any name.
constexpr std::pair<std::string_view, CheckpointKind> kFileNames[] = {
    {kTensors, CheckpointKind::kSafetensors},
    {"model.safetensors.index.json", CheckpointKind::kSafetensors},
    {"pytorch_model.bin", CheckpointKind::kTorch},
    {"pytorch_model.bin.index.json", CheckpointKind::kTorch},
    {kFirstPart, CheckpointKind::kDeepSpeed},
    {kLatest, CheckpointKind::kDeepSpeed},
};
constexpr const char* kKnown =
    "known are a Hugging Face folder, a file of safetensors or torch.save, the prefix of a "
    "TensorFlow checkpoint, a DeepSpeed folder or its mp_rank_00_model_states.pt";

OpenedCheckpoint opened(std::shared_ptr<const TensorSource> tensors, CheckpointKind kind,
                        Path folder) {
  return {std::move(tensors), kind, folder.empty() ? Path(".") : std::move(folder)};
}

std::shared_ptr<const TensorSource> open_sharded_torch(const Path& index) {
  return std::make_shared<ShardedSource>(
      index, [](const Path& path) { return std::make_shared<TorchFile>(path); });
}

Path with_suffix(Path path, const char* suffix) {
  path += suffix;
  return path;
}

// The folder of one tag. Parts other than 00 would contain slices of the layers.
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

// `latest` contains the name of the tag's folder and nothing else.
OpenedCheckpoint open_deepspeed(const Path& folder) {
  std::string tag = read_regular_file(folder / kLatest, kMaxTagBytes);
  while (!tag.empty() && (tag.back() == '\n' || tag.back() == '\r')) tag.pop_back();
  const bool plain = !tag.empty() && tag != "." && tag != ".." &&
                     tag.find_first_of(std::string_view("/\\\0", 3)) == std::string::npos;
  require(plain && files::is_directory(folder / tag),
          "{}: names the tag {}, which is not a folder here", (folder / kLatest).string(),
          quote(tag));
  require(files::exists(folder / tag / kFirstPart), "{}: lacks {}", (folder / tag).string(),
          kFirstPart);
  return open_deepspeed_tag(folder / tag);
}

// The files of a folder that may be a checkpoint, in order of preference.
std::vector<CheckpointFile> candidates_in(const Path& folder) {
  std::vector<CheckpointFile> found;
  for (const auto& [name, kind] : kFileNames) {
    if (files::exists(folder / name)) found.push_back({folder / name, kind});
  }
  std::vector<Path> bundles;
  for (const auto& file : files::directory_iterator(folder)) {
    if (file.path().extension() == ".index") bundles.push_back(file.path());
  }
  std::sort(bundles.begin(), bundles.end());
  for (const Path& bundle : bundles) found.push_back({bundle, CheckpointKind::kTensorBundle});
  return found;
}

OpenedCheckpoint open_candidate(const CheckpointFile& candidate, const Path& folder) {
  const Path& path = candidate.path;
  const bool is_index = path.extension() == ".json";
  switch (candidate.kind) {
    case CheckpointKind::kSafetensors:
      return opened(open_hugging_face_tensors(folder), candidate.kind, folder);
    case CheckpointKind::kTorch:
      return opened(is_index ? open_sharded_torch(path) : std::make_shared<TorchFile>(path),
                    candidate.kind, folder);
    case CheckpointKind::kTensorBundle:
      return opened(std::make_shared<TensorBundle>(path), candidate.kind, folder);
    case CheckpointKind::kDeepSpeed:
      break;
  }
  return path.filename() == kLatest ? open_deepspeed(folder) : open_deepspeed_tag(folder);
}

}  // namespace

// transformers and sentence-transformers add PEFT's adapter to the model beside it.
void refuse_adapter(const Path& folder) {
  const Path adapter = folder / "adapter_config.json";
  require(!files::exists(adapter),
          "{}: an adapter (PEFT) belongs to the model, and onebit reads none: merge it first, with "
          "merge_and_unload() and save_pretrained() of peft, or remove the file to read the model "
          "without it",
          adapter.string());
}

namespace {

OpenedCheckpoint open_folder(const Path& folder, std::optional<CheckpointKind> wanted) {
  refuse_adapter(folder);
  std::vector<CheckpointFile> found = candidates_in(folder);
  const auto first = std::find_if(found.begin(), found.end(), [&](const CheckpointFile& candidate) {
    return !wanted || candidate.kind == *wanted;
  });
  require(first != found.end(), "{}: no {}checkpoint in this folder; {}", folder.string(),
          wanted ? fmt::format("{} ", name_of(*wanted)) : "", kKnown);
  const CheckpointFile chosen = *first;
  if (chosen.kind == CheckpointKind::kTensorBundle) {
    require(first + 1 == found.end(),
            "{}: contains several TensorFlow checkpoints ({}, {}...); name one", folder.string(),
            chosen.path.filename().string(), found.back().path.filename().string());
  }
  OpenedCheckpoint result = open_candidate(chosen, folder);
  for (const CheckpointFile& other : found) {
    if (other.path != chosen.path) result.others.push_back(other);
  }
  return result;
}

OpenedCheckpoint open_file(const Path& path) {
  const Path folder = path.parent_path();
  if (path.extension() == ".index") {
    return opened(std::make_shared<TensorBundle>(path), CheckpointKind::kTensorBundle, folder);
  }
  if (path.filename().string().ends_with(".safetensors.index.json")) {
    return opened(open_sharded_safetensors(path), CheckpointKind::kSafetensors, folder);
  }
  if (path.filename().string().ends_with(".bin.index.json")) {
    return opened(open_sharded_torch(path), CheckpointKind::kTorch, folder);
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

// A file that DeepSpeed wrote may have any name.
bool is_of_kind(CheckpointKind found, CheckpointKind wanted) {
  return found == wanted ||
         (found == CheckpointKind::kTorch && wanted == CheckpointKind::kDeepSpeed);
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

OpenedCheckpoint open_checkpoint(const Path& path, std::optional<CheckpointKind> wanted) {
  if (files::is_directory(path)) {
    OpenedCheckpoint result = open_folder(path, wanted);
    result.tensors->verify_checksum();
    return result;
  }
  const bool is_prefix = !files::exists(path);
  require(!is_prefix || files::exists(with_suffix(path, ".index")),
          "{}: no such file or folder; {}", path.string(), kKnown);
  OpenedCheckpoint result = open_file(is_prefix ? with_suffix(path, ".index") : path);
  require(!wanted || is_of_kind(result.kind, *wanted), "{}: this is {}, {} was requested",
          path.string(), name_of(result.kind), wanted ? name_of(*wanted) : "");
  if (wanted) result.kind = *wanted;
  result.tensors->verify_checksum();
  return result;
}

std::optional<ListedTensors> list_tensors(const Path& folder, const ModelNames& names) {
  if (candidates_in(folder).empty()) return std::nullopt;
  const auto tensors = open_folder(folder, std::nullopt).tensors;
  ListedTensors listed{tensors->place(), {}};
  const auto& entries = tensors->entries();
  const Naming naming = detect_naming(entries, listed.place, *names.family);
  for (MapStep& step : plan_to_ours(entries, naming, listed.place, names).steps) {
    listed.ours.push_back(std::move(step.target));
  }
  return listed;
}

std::shared_ptr<RenamedSource> open_model(const Path& folder) {
  const Path config = folder / "config.json";
  const ModelNames names =
      files::exists(config) ? names_of(read_encoder_config(config)) : ModelNames();
  return under_our_names(open_checkpoint(folder).tensors, nullptr, names);
}

}  // namespace onebit::formats
