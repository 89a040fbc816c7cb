#include "onebit/engine/checkpoint.h"

#include <algorithm>
#include <array>
#include <span>

#include "onebit/base/run_files.h"
#include "onebit/device/profile.h"
#include "onebit/engine/checkpoint_state.h"

namespace onebit::engine {
namespace {

constexpr int64_t kFormatVersion = 1;
constexpr int64_t kLargestWorld = 1 << 20;
constexpr size_t kLongestTag = 255;

// The tag that rank 0 finds, equal on every rank.
std::optional<std::string> agreed_tag(comm::Communicator& communicator,
                                      const CheckpointFolder& folder, const std::string& wanted) {
  std::array<char, kLongestTag + 1> text{};
  if (communicator.rank() == 0) {
    if (!wanted.empty()) folder.require_present(wanted);
    const std::string tag = wanted.empty() ? folder.latest().value_or("") : wanted;
    require(tag.size() <= kLongestTag, "{}: names a checkpoint of {} characters",
            (folder.root() / run_files::kLatest).string(), tag.size());
    std::copy(tag.begin(), tag.end(), text.begin());
  }
  communicator.broadcast(std::as_writable_bytes(std::span(text)), 0);
  if (text[0] == '\0') return std::nullopt;
  return std::string(text.data());
}

ProfileTrack* writer_track(const Context& context) {
  ProfileTrack* const own = context.profile_track();
  return own == nullptr ? nullptr : &own->profile().track("checkpoint");
}

SavedCheckpoint read_checkpoint(const Path& folder, const std::string& tag, int rank, int ranks) {
  const std::string place = (folder / run_files::kState).string();
  const Json state = read_checkpoint_state(folder);
  JsonReader reader(state, place, "");
  const int64_t version = reader.integer("format", 0);
  require(version == kFormatVersion, "{}: checkpoint format {}, this onebit reads format {}", place,
          version, kFormatVersion);
  const int64_t world_size = reader.integer("world_size", 0);
  require(world_size >= 1 && world_size <= kLargestWorld,
          "{}: `world_size` is {}: it must lie between 1 and {}", place, world_size, kLargestWorld);
  return SavedCheckpoint{.tag = tag,
                         .model_folder = folder / run_files::kModel,
                         .step = reader.integer("step", 0),
                         .world_size = static_cast<int>(world_size),
                         .client_state = reader.raw("client_state"),
                         .shards = StateShards(folder, static_cast<int>(world_size),
                                               reader.raw("state"), rank, ranks)};
}

}  // namespace

void Checkpoints::save(const Engine& engine, const Json& client_state,
                       std::function<void(const Path&)> write_model) {
  auto shard = std::make_shared<StateShard>(rank_, world_size_);
  engine.save(*shard);
  Json state = {{"format", kFormatVersion},
                {"step", engine.completed_steps()},
                {"world_size", world_size_},
                {"client_state", client_state},
                {"state", shard->scalars()}};
  add_checksum(state);
  writer_.start({.tag = tag_of_step(engine.completed_steps()),
                 .state = std::move(state),
                 .shard = std::move(shard),
                 .write_model = std::move(write_model),
                 .keep_last = keep_last_,
                 .track = writer_track(engine.context())});
}

std::optional<SavedCheckpoint> Checkpoints::open(const std::string& tag) const {
  const std::optional<std::string> found = agreed_tag(communicator_, folder_, tag);
  if (!found) return std::nullopt;
  std::vector<std::string> others = folder_.tags();
  std::erase(others, *found);
  std::reverse(others.begin(), others.end());
  return suggest_other_checkpoints(others, [&] {
    SavedCheckpoint saved = read_checkpoint(folder_.folder(*found), *found, rank_, world_size_);
    saved.other_tags = others;
    return saved;
  });
}

}  // namespace onebit::engine
