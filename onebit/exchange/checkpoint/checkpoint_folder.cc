#include "onebit/exchange/checkpoint/checkpoint_folder.h"

#include <algorithm>

#include "onebit/data/formats/hugging_face_folder.h"
#include "onebit/data/formats/safetensors.h"
#include "onebit/ground/base/checksum.h"
#include "onebit/ground/base/error.h"
#include "onebit/ground/base/file.h"
#include "onebit/ground/base/folder.h"
#include "onebit/ground/base/json.h"
#include "onebit/ground/base/number.h"
#include "onebit/ground/base/run_files.h"

namespace onebit::checkpoint {

namespace {

constexpr const char* kChecksum = "crc32c";

uint32_t checksum_of(Json state) {
  state.erase(kChecksum);
  const std::string text = json_text(state);
  return crc32c(text.data(), text.size());
}

// For a file that was edited: otherwise its checksum would reveal the change.
void require_one_step(const Json& state, const Path& path) {
  const Json::json_pointer counted("/state/engine/completed_steps");
  if (!state.contains("step") || !state.contains(counted)) return;
  require(
      state.at("step") == state.at(counted),
      "{}: damaged: `step` is {}, but `state.engine.completed_steps` is {}; the two must be equal",
      path.string(), json_text(state.at("step")), json_text(state.at(counted)));
}

}  // namespace

void add_checksum(Json& state) {
  state[kChecksum] = checksum_of(state);
}

Json read_checkpoint_state(const Path& folder) {
  const Path path = folder / run_files::kState;
  Json state = read_json(path);
  require(state.is_object(), "{}: damaged: it contains no JSON object", path.string());
  const int64_t of_folder = step_of_tag(folder.filename().string());
  if (of_folder >= 0 && state.contains("step")) {
    require(state.at("step") == of_folder,
            "{}: belongs to step {}, but its folder belongs to step {}: copy the file from another "
            "copy of this checkpoint, or restore the name of the folder",
            path.string(), json_text(state.at("step")), of_folder);
  }
  if (!state.contains(kChecksum)) {
    require_one_step(state, path);
    return state;
  }
  require(state.at(kChecksum) == checksum_of(state),
          "{}: damaged: its contents do not match the checksum that was written with them (if you "
          "edited the file, remove the key `{}`)",
          path.string(), kChecksum);
  return state;
}

int world_size_of(const Json& state, const std::string& place) {
  constexpr int64_t kLargest = 1 << 20;
  JsonReader reader(state, place, "");
  const int64_t ranks = reader.integer("world_size", 0);
  require(ranks >= 1 && ranks <= kLargest, "{}: `world_size` is {}: it must lie between 1 and {}",
          place, ranks, kLargest);
  return static_cast<int>(ranks);
}

std::string model_file_name() {
  return fmt::format("{}/{}", run_files::kModel, formats::kTensors);
}

std::string stated_checksum(const Path& file) {
  return formats::SafetensorsFile(file).stated_checksum().value_or("");
}

void require_of_checkpoint(const Json& state, const Path& folder, const std::string& name) {
  const Json files = state.value(kFilesOfCheckpoint, Json::object());
  const auto written = files.find(name);
  if (written == files.end()) return;
  const Path file = folder / name;
  const std::string found = stated_checksum(file);
  require(found.empty() || *written == found,
          "{}: is not the file that was written with this checkpoint: its checksum is \"{}\", but "
          "{} records {}; copy the file from another copy of this checkpoint",
          file.string(), found, run_files::kState, json_text(*written));
}

namespace {

constexpr std::string_view kTagPrefix = "global_step";
constexpr uint64_t kMaxTagBytes = 4096;

// Folders of the user may have these suffixes, too.
bool is_left_over(const std::string& name) {
  const bool is_tag = step_of_tag(name.substr(0, name.find('.'))) >= 0;
  return is_tag && (name.ends_with(kPartialSuffix) || name.ends_with(kReplacedSuffix));
}

}  // namespace

void refuse_absent_tag(const Path& root, const std::string& tag,
                       const std::vector<std::string>& present) {
  fail("{}: contains no checkpoint \"{}\"; {}", root.string(), tag,
       present.empty() ? "it contains no checkpoint at all"
                       : fmt::format("it contains {}", fmt::join(present, ", ")));
}

std::string tag_of_step(int64_t step) {
  return fmt::format("{}{}", kTagPrefix, step);
}

int64_t step_of_tag(const std::string& tag) {
  if (!tag.starts_with(kTagPrefix)) return -1;
  return whole_number<int64_t>(std::string_view(tag).substr(kTagPrefix.size())).value_or(-1);
}

std::optional<std::string> CheckpointFolder::tag_in_latest() const {
  const Path file = root_ / run_files::kLatest;
  if (!std::filesystem::exists(file)) return std::nullopt;
  require(!std::filesystem::is_directory(file),
          "{}: is a folder, but must be a file that names the newest checkpoint: move the folder "
          "elsewhere (without this file, the newest checkpoint in the run's folder is used)",
          file.string());
  std::string tag = read_regular_file(file, kMaxTagBytes);
  while (!tag.empty() && (tag.back() == '\n' || tag.back() == ' ' || tag.back() == '\r')) {
    tag.pop_back();
  }
  return tag;
}

bool CheckpointFolder::holds(const std::string& tag) const {
  return !tag.empty() && !is_left_over(tag) && std::filesystem::is_directory(folder(tag));
}

std::string CheckpointFolder::newest() const {
  const std::string named = tag_in_latest().value_or("");
  if (holds(named)) return named;
  const std::vector<std::string> there = tags();
  return there.empty() ? "" : there.back();
}

std::optional<std::string> CheckpointFolder::latest() const {
  const std::optional<std::string> tag = tag_in_latest();
  if (!tag) {
    // A folder under its final name is complete: the process may have ended before `latest` was
    // written.
    const std::vector<std::string> whole = tags();
    return whole.empty() ? std::nullopt : std::optional(whole.back());
  }
  if (holds(*tag)) return tag;
  const std::vector<std::string> others = tags_beside(*tag);
  fail("{}: names the checkpoint \"{}\", which {}; {}", (root_ / run_files::kLatest).string(), *tag,
       is_left_over(*tag) ? "is incomplete" : "does not exist",
       others.empty()
           ? "there is no other checkpoint: delete this file to start the run from the beginning"
           : fmt::format("resume from another one with --resume TAG, or write its name into this "
                         "file; available: {}",
                         fmt::join(others, ", ")));
}

std::vector<std::string> CheckpointFolder::tags() const {
  std::vector<std::string> found;
  if (!std::filesystem::is_directory(root_)) return found;
  for (const auto& item : std::filesystem::directory_iterator(root_)) {
    const std::string name = item.path().filename().string();
    if (item.is_directory() && step_of_tag(name) >= 0) found.push_back(name);
  }
  std::sort(found.begin(), found.end(), [](const std::string& a, const std::string& b) {
    return step_of_tag(a) < step_of_tag(b);
  });
  return found;
}

std::vector<std::string> CheckpointFolder::tags_beside(const std::string& tag) const {
  std::vector<std::string> others = tags();
  std::erase(others, tag);
  std::reverse(others.begin(), others.end());
  return others;
}

void CheckpointFolder::begin(const std::string& tag) const {
  make_folder(root_);
  for (const auto& item : std::filesystem::directory_iterator(root_)) {
    const std::string name = item.path().filename().string();
    if (item.is_directory() ? is_left_over(name) : name.starts_with(run_files::kDiskToken)) {
      std::filesystem::remove_all(item.path());
    }
  }
  std::filesystem::remove_all(partial_folder(tag));
  make_folder(partial_folder(tag));
}

void CheckpointFolder::publish(const std::string& tag) const {
  sync_tree(partial_folder(tag));
  replace_folder(partial_folder(tag), folder(tag));
  point_latest_at(tag);
}

void CheckpointFolder::point_latest_at(const std::string& tag) const {
  write_file_atomically(root_ / run_files::kLatest, tag);
}

void CheckpointFolder::prune(int64_t keep_last) const {
  std::vector<std::string> unwanted, kept;
  const std::optional<std::string> newest = latest();
  for (std::string& tag : tags()) {
    // After the run was reset to an older step, checkpoints of later steps no longer belong to it.
    // A recovery must not find them.
    const bool is_abandoned = newest && step_of_tag(tag) > step_of_tag(*newest);
    (is_abandoned ? unwanted : kept).push_back(std::move(tag));
  }
  const int64_t surplus = static_cast<int64_t>(kept.size()) - keep_last;
  for (int64_t index = 0; index < surplus; ++index) {
    std::string& tag = kept[static_cast<size_t>(index)];
    if (tag != newest) unwanted.push_back(std::move(tag));
  }
  for (const std::string& tag : unwanted) {
    // The folder is renamed first: a half-deleted one must never look like a checkpoint.
    Path replaced = folder(tag);
    replaced += kReplacedSuffix;
    std::filesystem::rename(folder(tag), replaced);
    std::filesystem::remove_all(replaced);
  }
}

}  // namespace onebit::checkpoint
