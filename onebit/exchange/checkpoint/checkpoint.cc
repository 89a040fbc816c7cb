#include "onebit/exchange/checkpoint/checkpoint.h"

#include <algorithm>

#include "onebit/exchange/checkpoint/checkpoint_recovery.h"
#include "onebit/exchange/checkpoint/checkpoint_state.h"
#include "onebit/ground/base/run_files.h"
#include "onebit/math/device/profile.h"

namespace onebit::checkpoint {
namespace {

constexpr int64_t kFormatVersion = 1;

ProfileTrack* writer_track(const Context& context) {
  ProfileTrack* const own = context.profile_track();
  return own == nullptr ? nullptr : &own->profile().track("checkpoint");
}

// All data of a checkpoint except the shards.
struct CheckpointFacts {
  int64_t step = 0;
  int world_size = 1;
  Json client_state, state;
};

CheckpointFacts read_facts(const Path& folder) {
  const std::string place = (folder / run_files::kState).string();
  const Json state = read_checkpoint_state(folder);
  JsonReader reader(state, place, "");
  const int64_t version = reader.integer("format", 0);
  require(version == kFormatVersion,
          "{}: the checkpoint has format {}, but this version of onebit reads format {}; start a "
          "new run from its model (--initialize-from)",
          place, version, kFormatVersion);
  return {.step = reader.integer("step", 0),
          .world_size = world_size_of(state, place),
          .client_state = reader.raw("client_state"),
          .state = reader.raw("state")};
}

SavedCheckpoint saved_checkpoint(const Path& folder, const std::string& tag, CheckpointFacts facts,
                                 StateShards shards) {
  return SavedCheckpoint{.tag = tag,
                         .model_folder = folder / run_files::kModel,
                         .step = facts.step,
                         .world_size = facts.world_size,
                         .client_state = std::move(facts.client_state),
                         .shards = std::move(shards)};
}

// Sorts after generations that were made before, as far as clocks agree.
std::string new_generation(const Disks& disks, int64_t number) {
  return fmt::format("{}-{:06}", disks.start, number);
}

}  // namespace

Checkpoints::Checkpoints(comm::Communicator& communicator, Path folder, int64_t keep_last,
                         int64_t copies)
    : communicator_(communicator),
      folder_(folder),
      keep_last_(keep_last),
      copies_(copies),
      rank_(communicator.rank()),
      world_size_(communicator.world_size()),
      disks_(find_disks(communicator, folder)),
      writer_(communicator, std::move(folder), disks_, copies) {}

void Checkpoints::save(const engine::Engine& engine, const Json& client_state,
                       std::function<void(const Path&)> write_model) {
  writer_.wait_for_previous();  // so that there is never more than one copy of the state
  auto shard = std::make_shared<StateShard>(rank_, world_size_);
  engine.save(*shard);
  Json state = {{"format", kFormatVersion},
                {"step", engine.completed_steps()},
                {"world_size", world_size_},
                {"client_state", client_state},
                {"state", shard->scalars()}};
  if (disks_.count() > 1) {
    state["generation"] = new_generation(disks_, saves_++);
    state["disks"] = {{"hosts", disks_.names},
                      {"of_rank", disks_.ranks.node_of_rank()},
                      {"copies", std::min<int64_t>(copies_, disks_.count())}};
  }
  writer_.start({.tag = tag_of_step(engine.completed_steps()),
                 .step = engine.completed_steps(),
                 .state = std::move(state),
                 .shard = std::move(shard),
                 .write_model = std::move(write_model),
                 .keep_last = keep_last_,
                 .track = writer_track(engine.context())});
}

std::optional<SavedCheckpoint> Checkpoints::open(const std::string& tag) const {
  std::optional<RecoveredCheckpoint> found =
      recover_checkpoint(communicator_, folder_, disks_, tag);
  if (!found) return std::nullopt;
  const Path folder = folder_.folder(found->tag);
  CheckpointFacts facts = read_facts(folder);
  std::unique_ptr<ShardService> service;
  if (found->fetches) {
    service = std::make_unique<ShardService>(communicator_.duplicate(),
                                             [folder, world = facts.world_size](int shard) {
                                               return folder / shard_name(shard, world);
                                             });
  }
  StateShards shards(folder, found->holders, std::move(facts.state), rank_, std::move(service));
  SavedCheckpoint saved = saved_checkpoint(folder, found->tag, std::move(facts), std::move(shards));
  saved.other_tags = std::move(found->other_tags);
  saved.report = std::move(found->report);
  return saved;
}

}  // namespace onebit::checkpoint
