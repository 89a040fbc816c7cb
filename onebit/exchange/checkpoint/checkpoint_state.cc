#include "onebit/exchange/checkpoint/checkpoint_state.h"

#include "onebit/data/formats/hugging_face_folder.h"
#include "onebit/data/formats/safetensors.h"
#include "onebit/exchange/checkpoint/checkpoint_folder.h"
#include "onebit/ground/base/crc32c.h"
#include "onebit/ground/base/json.h"
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

}  // namespace onebit::checkpoint
