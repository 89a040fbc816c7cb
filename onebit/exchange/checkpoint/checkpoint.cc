#include "onebit/exchange/checkpoint/checkpoint.h"

#include <algorithm>
#include <vector>

#include "onebit/exchange/checkpoint/checkpoint_folder.h"
#include "onebit/exchange/checkpoint/checkpoint_recovery.h"
#include "onebit/exchange/checkpoint/file_exchange.h"
#include "onebit/exchange/checkpoint/state_shard.h"
#include "onebit/exchange/comm/collectives.h"
#include "onebit/ground/base/clock.h"
#include "onebit/ground/base/error.h"
#include "onebit/ground/base/folder.h"
#include "onebit/ground/base/json.h"
#include "onebit/ground/base/log.h"
#include "onebit/ground/base/run_event.h"
#include "onebit/ground/base/run_files.h"
#include "onebit/math/device/profile.h"

namespace onebit::checkpoint {

namespace {

constexpr const char* kWhat = "the checkpoint was not written";

}  // namespace

CheckpointWriter::CheckpointWriter(comm::Communicator& communicator, Path folder,
                                   const Disks& disks, int64_t copies)
    : communicator_(communicator.duplicate()),
      folder_(std::move(folder)),
      disks_(disks),
      copies_(copies) {
  communicator_->count_inside_node_separately();  // its traffic does not count for the steps
}

CheckpointWriter::~CheckpointWriter() {
  if (running_.valid()) running_.wait();
}

void CheckpointWriter::start(CheckpointJob job) {
  wait_for_previous();
  running_ = std::async(std::launch::async, [this, job = std::move(job)]() mutable {
    // The future keeps this function until the next checkpoint: the move frees the copies earlier.
    const CheckpointJob written = std::move(job);
    write(written);
  });
}

void CheckpointWriter::wait_for_previous() {
  const bool failed_before = last_failed_;
  try {
    wait();
  } catch (const std::exception& error) {
    if (failed_before) throw;
    if (communicator_->rank() == 0)
      log_warning("{}; trying the next checkpoint", failure_text(error));
  }
}

void CheckpointWriter::wait() {
  if (!running_.valid()) return;
  last_failed_ = true;
  running_.get();
  last_failed_ = false;
}

// The new checkpoint is complete at this point, so failing to remove an old one is only a warning.
void CheckpointWriter::prune(int64_t keep_last) const {
  try {
    folder_.prune(keep_last);
  } catch (const std::exception& error) {
    log_warning("an old checkpoint could not be removed: {}", failure_text(error));
  }
}

// Sends a copy of every shard to each disk following its own. The ranks there take turns.
void CheckpointWriter::send_copies(const Path& partial) {
  std::vector<FileTransfer> transfers;
  const int world = communicator_->world_size();
  for (int rank = 0; rank < world; ++rank) {
    const auto turn = static_cast<size_t>(disks_.ranks.local_of(rank));
    const Path file = partial / shard_name(rank, world);
    for (const int disk : disks_.keepers_of(rank, copies_)) {
      if (disk == disks_.disk_of(rank)) continue;
      const auto takers = disks_.ranks.ranks_of(disk);
      transfers.push_back(
          {.from = rank, .to = takers[turn % takers.size()], .source = file, .target = file});
    }
  }
  if (transfers.empty()) return;
  comm::run_on_all(*communicator_, kWhat, [&] { exchange_files(*communicator_, transfers); });
}

// Adds the checksums of the shards and of the model, whose bytes are equal on all disks.
// Collective.
Json CheckpointWriter::complete_state(const CheckpointJob& job, const Path& partial) const {
  const int world = communicator_->world_size(), rank = communicator_->rank();
  const Path model = partial / model_file_name();
  std::string own;
  Json state = job.state, files = Json::object();
  comm::run_on_all(*communicator_, kWhat, [&] {
    own = stated_checksum(partial / shard_name(rank, world));
    if (std::filesystem::exists(model)) files[model_file_name()] = stated_checksum(model);
  });
  const std::vector<std::string> shards = comm::gather_texts(*communicator_, own);
  for (int shard = 0; shard < world; ++shard) {
    files[shard_name(shard, world)] = shards[static_cast<size_t>(shard)];
  }
  state[kFilesOfCheckpoint] = std::move(files);
  add_checksum(state);
  return state;
}

// Afterwards the partial folder of each disk contains everything that belongs to the disk.
void CheckpointWriter::write_parts(const CheckpointJob& job) {
  const bool leads = disks_.leads(communicator_->rank());
  const Path partial = folder_.partial_folder(job.tag);
  comm::run_on_all(*communicator_, kWhat, [&] {
    if (leads) folder_.begin(job.tag);
  });
  comm::run_on_all(*communicator_, kWhat, [&] {
    job.shard->write(partial);
    if (!leads) return;
    make_folder(partial / run_files::kModel);
    job.write_model(partial / run_files::kModel);
  });
  if (disks_.count() > 1) send_copies(partial);
  const Json state = complete_state(job, partial);
  // Written last: it marks this disk's part as complete, in case only another disk publishes it.
  comm::run_on_all(*communicator_, kWhat, [&] {
    if (!leads) return;
    write_file_atomically(partial / run_files::kState, json_text(state, 2) + "\n");
    if (disks_.count() > 1) sync_tree(partial);
  });
}

void CheckpointWriter::write(const CheckpointJob& job) {
  const PhaseSpan phase(job.track, "write checkpoint");
  const int rank = communicator_->rank();
  const bool leads = disks_.leads(rank), alone = disks_.count() == 1;
  const Stopwatch watch;
  bool whole = false;
  try {
    write_parts(job);
    whole = !alone;
    comm::run_on_all(*communicator_, kWhat, [&] {
      if (!leads) return;
      folder_.publish(job.tag);
      if (alone) prune(job.keep_last);
    });
    // The old ones are removed when every disk has the new one.
    if (!alone && leads) prune(job.keep_last);
  } catch (...) {
    // A complete part may be what completes another disk's: the next writer removes it.
    std::error_code ignored;
    if (leads && !whole) std::filesystem::remove_all(folder_.partial_folder(job.tag), ignored);
    throw;
  }
  if (rank == 0) report_run_event({.kind = RunEvent::Kind::kSaved, .step = job.step});
  log_debug("checkpoint {} written in {:.2f} s", job.tag, watch.seconds());
}

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
  StateShards shards(folder, found->holders, std::move(facts.state), rank_,
                     found->fetches ? communicator_.duplicate() : nullptr);
  SavedCheckpoint saved = saved_checkpoint(folder, found->tag, std::move(facts), std::move(shards));
  saved.other_tags = std::move(found->other_tags);
  saved.report = std::move(found->report);
  return saved;
}

}  // namespace onebit::checkpoint
