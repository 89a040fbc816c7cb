#include "onebit/engine/checkpoint.h"

namespace onebit::engine {
namespace {

constexpr int64_t kFormatVersion = 1;

}  // namespace

void Checkpoints::save(const Engine& engine, const Json& client_state,
                       std::function<void(const Path&)> write_model) {
  auto shard = std::make_shared<StateShard>(rank_, world_size_);
  engine.save(*shard);
  const Json state = {{"format", kFormatVersion},
                      {"step", engine.completed_steps()},
                      {"world_size", world_size_},
                      {"client_state", client_state},
                      {"state", shard->scalars()}};
  writer_.start({.tag = tag_of_step(engine.completed_steps()),
                 .state = state,
                 .shard = std::move(shard),
                 .write_model = std::move(write_model),
                 .keep_last = keep_last_});
}

std::optional<SavedCheckpoint> Checkpoints::open(const std::string& tag) const {
  const std::optional<std::string> found = tag.empty() ? folder_.latest() : tag;
  if (!found) return std::nullopt;
  const Path folder = folder_.folder(*found);
  const std::string place = (folder / "state.json").string();
  const Json state = read_json(place);
  JsonReader reader(state, place, "");
  const int64_t version = reader.integer("format", 0);
  require(version == kFormatVersion, "{}: checkpoint format {}, this onebit reads format {}", place,
          version, kFormatVersion);
  const int world_size = static_cast<int>(reader.integer("world_size", 0));
  require(world_size >= 1, "{}: `world_size` must be at least 1", place);
  return SavedCheckpoint{.tag = *found,
                         .model_folder = folder / "model",
                         .step = reader.integer("step", 0),
                         .world_size = world_size,
                         .client_state = reader.raw("client_state"),
                         .shards = StateShards(folder, world_size, reader.raw("state"))};
}

}  // namespace onebit::engine
