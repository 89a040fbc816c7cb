#include "onebit/exchange/checkpoint/checkpoint_contents.h"

#include <algorithm>

#include "onebit/data/formats/hugging_face_folder.h"
#include "onebit/data/formats/safetensors.h"
#include "onebit/exchange/checkpoint/checkpoint_folder.h"
#include "onebit/exchange/checkpoint/state_shard.h"
#include "onebit/ground/base/error.h"
#include "onebit/ground/base/folder.h"
#include "onebit/ground/base/json.h"
#include "onebit/ground/base/run_files.h"

namespace onebit::checkpoint {
namespace {

namespace files = std::filesystem;

constexpr const char* kGeneration = "generation";

// A checkpoint on a single disk has no generation. The checksum of its contents replaces it.
std::string generation_of(const Json& state) {
  if (state.contains(kGeneration)) return state.at(kGeneration).get<std::string>();
  return fmt::format("crc32c {}", json_text(state.value("crc32c", Json())));
}

std::vector<std::pair<std::string, int64_t>> common_files_in(const Path& folder) {
  std::vector<std::pair<std::string, int64_t>> found = {
      {run_files::kState, static_cast<int64_t>(files::file_size(folder / run_files::kState))}};
  const Path model = folder / run_files::kModel;
  if (!files::is_directory(model)) return {};
  // The model folder of a sentence model has subfolders.
  for (const auto& file : files::recursive_directory_iterator(model)) {
    if (!file.is_regular_file()) continue;
    found.emplace_back(file.path().lexically_relative(folder),
                       static_cast<int64_t>(file.file_size()));
  }
  std::sort(found.begin() + 1, found.end());
  return found;
}

// Error: not a checkpoint, or its state.json does not even identify it.
HeldCheckpoint read_contents(const Path& folder, const std::string& tag, bool published) {
  // The checksum decides about the common files. Even a damaged file states the owners of shards.
  const Path path = folder / run_files::kState;
  const Json state = read_json(path);
  require(state.is_object(), "{}: damaged: it contains no JSON object", path.string());
  HeldCheckpoint held = {.tag = tag,
                         .generation = generation_of(state),
                         .step = state.at("step").get<int64_t>(),
                         .world_size = world_size_of(state, path.string()),
                         .published = published,
                         .shards = {},
                         .common_files = common_files_in(folder),
                         .disks = state.value("disks", Json()),
                         .problem = {}};
  for (int shard = 0; shard < held.world_size; ++shard) {
    if (files::exists(folder / shard_name(shard, held.world_size))) held.shards.push_back(shard);
  }
  return held;
}

// Adds the path, which errors of a missing key or of its type lack.
std::string problem_of(const Path& folder, const std::exception& error) {
  const std::string path = (folder / run_files::kState).string(), text = failure_text(error);
  return text.starts_with(path) ? text : fmt::format("{}: damaged: {}", path, text);
}

}  // namespace

Json DiskContents::to_json() const {
  Json checkpoints = Json::array();
  for (const HeldCheckpoint& one : held) {
    checkpoints.push_back(
        Json::array({one.tag, one.generation, one.step, one.world_size, one.published, one.shards,
                     one.common_files, one.disks, one.problem}));
  }
  return {{"held", checkpoints},
          {"latest", latest},
          {"absent_latest", absent_latest ? Json(*absent_latest) : Json()}};
}

DiskContents DiskContents::from_json(const Json& json) {
  DiskContents contents = {.held = {}, .latest = json.at("latest").get<std::string>()};
  if (const Json& absent = json.at("absent_latest"); !absent.is_null()) {
    contents.absent_latest = absent.get<std::string>();
  }
  for (const Json& one : json.at("held")) {
    HeldCheckpoint held;
    one[0].get_to(held.tag);
    one[1].get_to(held.generation);
    one[2].get_to(held.step);
    one[3].get_to(held.world_size);
    one[4].get_to(held.published);
    one[5].get_to(held.shards);
    one[6].get_to(held.common_files);
    held.disks = one[7];
    one[8].get_to(held.problem);
    contents.held.push_back(std::move(held));
  }
  return contents;
}

DiskContents contents_of_disk(const CheckpointFolder& folder) {
  DiskContents contents;
  std::error_code no_folder;
  for (const auto& item : files::directory_iterator(folder.root(), no_folder)) {
    const std::string name = item.path().filename().string();
    const bool published = !name.ends_with(kPartialSuffix);
    const std::string tag = published ? name : name.substr(0, name.size() - kPartialSuffix.size());
    const bool has_state = files::exists(item.path() / run_files::kState);
    const bool has_lost_it = published && step_of_tag(tag) >= 0 && item.is_directory();
    if (name.ends_with(kReplacedSuffix) || !(has_state || has_lost_it)) continue;
    try {
      contents.held.push_back(read_contents(item.path(), tag, published));
    } catch (const std::exception& error) {
      contents.held.push_back({.tag = tag,
                               .published = published,
                               .shards = {},
                               .disks = {},
                               .problem = problem_of(item.path(), error)});
    }
  }
  const std::optional<std::string> named = folder.tag_in_latest();
  if (named && !folder.holds(*named)) {
    contents.absent_latest = named;
  } else {
    contents.latest = folder.newest();
  }
  return contents;
}

Path folder_of(const CheckpointFolder& folder, const HeldCheckpoint& held) {
  return held.published ? folder.folder(held.tag) : folder.partial_folder(held.tag);
}

std::string flaw_of_shard(const Path& folder, int shard, int world_size) {
  Json state = Json::object();
  try {
    state = read_checkpoint_state(folder);
  } catch (const std::exception&) {
    // A defect of the common files: the shard may be intact.
  }
  try {
    const std::string name = shard_name(shard, world_size);
    formats::SafetensorsFile(folder / name).verify_checksum();
    require_of_checkpoint(state, folder, name);
    return {};
  } catch (const Error& error) {
    return failure_text(error);
  }
}

std::string flaw_of_common_files(const Path& folder, const HeldCheckpoint& held) {
  if (held.common_files.empty()) {
    return fmt::format("{}: does not exist", (folder / run_files::kModel).string());
  }
  try {
    require_of_checkpoint(read_checkpoint_state(folder), folder, model_file_name());
    formats::require_unchanged(folder / run_files::kModel);
    for (const auto& [name, bytes] : held.common_files) {
      if (name.ends_with(".safetensors")) {
        formats::SafetensorsFile(folder / name).verify_checksum();
      }
    }
    return {};
  } catch (const std::exception& error) {
    return failure_text(error);
  }
}

}  // namespace onebit::checkpoint
