#include "onebit/engine/checkpoint_contents.h"

#include <algorithm>

#include "onebit/base/error.h"
#include "onebit/base/folder.h"
#include "onebit/base/run_files.h"
#include "onebit/engine/checkpoint_state.h"
#include "onebit/engine/state_shard.h"
#include "onebit/formats/safetensors.h"

namespace onebit::engine {
namespace {

namespace files = std::filesystem;

constexpr const char* kGeneration = "generation";
constexpr int64_t kMostRanks = 1 << 20;

// A checkpoint of one disk has no name of its own; its contents are that.
std::string generation_of(const Json& state) {
  if (state.contains(kGeneration)) return state.at(kGeneration).get<std::string>();
  return fmt::format("crc32c {}", state.value("crc32c", Json()).dump());
}

std::vector<std::pair<std::string, int64_t>> common_files_in(const Path& folder) {
  std::vector<std::pair<std::string, int64_t>> found = {
      {run_files::kState, static_cast<int64_t>(files::file_size(folder / run_files::kState))}};
  const Path model = folder / run_files::kModel;
  if (!files::is_directory(model)) return {};
  // A sentence model has folders in its own.
  for (const auto& file : files::recursive_directory_iterator(model)) {
    if (!file.is_regular_file()) continue;
    found.emplace_back(file.path().lexically_relative(folder),
                       static_cast<int64_t>(file.file_size()));
  }
  std::sort(found.begin() + 1, found.end());
  return found;
}

// Error: no checkpoint, or one whose state.json does not even say which it is.
HeldCheckpoint look_at(const Path& folder, const std::string& tag, bool published) {
  // Its checksum counts for what every disk has; whose the shards are is said by a damaged one too.
  const Json state = read_json(folder / run_files::kState);
  HeldCheckpoint held = {.tag = tag,
                         .generation = generation_of(state),
                         .step = state.at("step").get<int64_t>(),
                         .world_size = 0,
                         .published = published,
                         .shards = {},
                         .common_files = common_files_in(folder),
                         .disks = state.value("disks", Json())};
  const auto world_size = state.at("world_size").get<int64_t>();
  require(world_size >= 1 && world_size <= kMostRanks, "{}: `world_size` is {}", folder.string(),
          world_size);
  held.world_size = static_cast<int>(world_size);
  for (int shard = 0; shard < held.world_size; ++shard) {
    if (files::exists(folder / shard_name(shard, held.world_size))) held.shards.push_back(shard);
  }
  return held;
}

}  // namespace

Json DiskContents::to_json() const {
  Json checkpoints = Json::array();
  for (const HeldCheckpoint& one : held) {
    checkpoints.push_back(Json::array({one.tag, one.generation, one.step, one.world_size,
                                       one.published, one.shards, one.common_files, one.disks}));
  }
  return {{"held", checkpoints}, {"latest", latest}};
}

DiskContents DiskContents::from_json(const Json& json) {
  DiskContents contents = {.held = {}, .latest = json.at("latest").get<std::string>()};
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
    contents.held.push_back(std::move(held));
  }
  return contents;
}

DiskContents contents_of_disk(const CheckpointFolder& folder) {
  DiskContents contents;
  std::error_code error;
  for (const auto& item : files::directory_iterator(folder.root(), error)) {
    const std::string name = item.path().filename().string();
    const bool published = !name.ends_with(kPartialSuffix);
    if (name.ends_with(kReplacedSuffix) || !files::exists(item.path() / run_files::kState)) {
      continue;
    }
    const std::string tag = published ? name : name.substr(0, name.size() - kPartialSuffix.size());
    try {
      contents.held.push_back(look_at(item.path(), tag, published));
    } catch (const std::exception&) {
      // Nothing that the run could be resumed from; if nothing else is, the error names the tag.
      contents.held.push_back({.tag = tag, .published = published, .shards = {}, .disks = {}});
    }
  }
  try {
    contents.latest = folder.latest().value_or("");
  } catch (const Error&) {
    // It names what is not there: others may know better.
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
    // A flaw of the common files: the shard may be whole.
  }
  try {
    const std::string name = shard_name(shard, world_size);
    formats::SafetensorsFile(folder / name).verify_checksum();
    require_of_checkpoint(state, folder, name);
    return {};
  } catch (const Error& error) {
    return error.what();
  }
}

std::string flaw_of_common_files(const Path& folder, const HeldCheckpoint& held) {
  if (held.common_files.empty()) {
    return fmt::format("{}: is not there", (folder / run_files::kModel).string());
  }
  try {
    require_of_checkpoint(read_checkpoint_state(folder), folder, model_file_name());
    for (const auto& [name, bytes] : held.common_files) {
      if (name.ends_with(".safetensors")) {
        formats::SafetensorsFile(folder / name).verify_checksum();
      }
    }
    return {};
  } catch (const std::exception& error) {
    return error.what();
  }
}

}  // namespace onebit::engine
