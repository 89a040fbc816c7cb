// Saving and restoring a run (docs/checkpoint-format.md). A checkpoint is a folder <run>/<tag>/:
//   model/                            a Hugging Face folder, written by the caller
//   state.json                        counters, scalars of the state, the caller's client state
//   optimizer-RRRRR-of-WWWWW.safetensors   moments (one part per rank) and residuals of rank R
// Any number of ranks can resume from it: buffers common to all ranks were cut into equal parts,
// all of which each rank reads (state_shard.h). A rank's own buffers are re-distributed by its
// optimizer (optim/state_layout.h). If hosts have their own disks (disks.h), each has model/,
// state.json, and the shards of its ranks and of the ranks whose copies it keeps.
#pragma once

#include <functional>
#include <future>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "onebit/exchange/checkpoint/checkpoint_folder.h"
#include "onebit/exchange/checkpoint/disks.h"
#include "onebit/exchange/checkpoint/state_shard.h"
#include "onebit/exchange/comm/communicator.h"
#include "onebit/exchange/engine/engine.h"
#include "onebit/ground/base/error.h"
#include "onebit/ground/base/json.h"
#include "onebit/math/device/context.h"

namespace onebit::checkpoint {

struct CheckpointJob {
  std::string tag;
  int64_t step = 0;
  // state.json without the checksums of the files being written. It is equal on every rank.
  Json state;
  std::shared_ptr<const StateShard> shard;  // this rank's
  // Fills the folder "model". Called on one rank of each disk.
  std::function<void(const Path&)> write_model;
  int64_t keep_last = 1;
  ProfileTrack* track = nullptr;  // for the profile of the writing
};

// Writes checkpoints while training continues: the state is copied, then a thread of each rank
// writes its part, and one rank of each disk publishes its parts once every rank has finished.
class CheckpointWriter {
 public:
  // Collective. Each rank writes into `folder` of its own disk and, with `copies` above 1, into the
  // folders of the following `copies` - 1 disks. `disks` outlives this object.
  CheckpointWriter(comm::Communicator& communicator, Path folder, const Disks& disks,
                   int64_t copies);
  // Waits for the write in progress and ignores its error, so call wait() first.
  ~CheckpointWriter();
  CheckpointWriter(const CheckpointWriter&) = delete;
  CheckpointWriter& operator=(const CheckpointWriter&) = delete;

  // Waits as wait_for_previous() does, then begins this write and returns. Every rank calls it in
  // the same order.
  void start(CheckpointJob job);
  // Returns when no write is in progress. If the last one failed, a warning says so, and the next
  // checkpoint takes its place. Throws the errors of the last write if the one before it failed
  // too.
  void wait_for_previous();
  // Returns when no write is in progress. Errors (of the last write, identical on every rank, with
  // the failed rank): a full disk and the like.
  void wait();

 private:
  void write(const CheckpointJob& job);
  void write_parts(const CheckpointJob& job);
  void send_copies(const Path& partial);
  Json complete_state(const CheckpointJob& job, const Path& partial) const;
  void prune(int64_t keep_last) const;

  std::unique_ptr<comm::Communicator> communicator_;
  CheckpointFolder folder_;
  const Disks& disks_;
  int64_t copies_;
  std::future<void> running_;
  bool last_failed_ = false;
};

// A checkpoint on disk.
struct SavedCheckpoint {
  std::string tag;
  Path model_folder;
  int64_t step = 0;
  int world_size = 1;
  Json client_state;
  StateShards shards;
  std::vector<std::string> other_tags = {};  // of the same run, newest first
  std::vector<std::string> report = {};      // the source disks of its parts. Empty on one disk
};

// Returns the result of `read`. Extends its errors by the checkpoints from which the run could be
// resumed instead.
template <typename Read>
auto suggest_other_checkpoints(const std::vector<std::string>& other_tags, const Read& read) {
  try {
    return read();
  } catch (const Error& error) {
    if (other_tags.empty()) throw;
    fail("{}; or resume from another checkpoint: --resume {}", error.what(),
         fmt::join(other_tags, " or --resume "));
  }
}

class Checkpoints {
 public:
  // Collective. `folder` is created with the first checkpoint. The ranks' folders of this name may
  // be on one disk or on several. Then `copies` is the number of disks that keep a shard.
  Checkpoints(comm::Communicator& communicator, Path folder, int64_t keep_last, int64_t copies = 1);

  // Copies the engine's state and returns. Files are written while training continues. The tag is
  // global_step<completed steps>. `write_model` fills the model folder from a copy of the values
  // taken by the caller. It runs on one rank of each disk, on another thread. Collective. Throws
  // the errors of the previous write if the one before it failed as well.
  void save(const engine::Engine& engine, const Json& client_state,
            std::function<void(const Path&)> write_model);
  // Returns when no write is in progress. Errors as for save().
  void wait_for_previous() { writer_.wait_for_previous(); }
  // Returns when everything is on disk. Throws the errors of the last write.
  void wait() { writer_.wait(); }

  // Opens the checkpoint `tag`. Without a tag it is the newest intact one, starting at the one that
  // `latest` names, or nothing if there is no checkpoint (checkpoint_recovery.h). Collective.
  // Errors: no such tag, with the existing ones. The tag, or every checkpoint, is damaged or
  // incomplete. Another version of the format.
  std::optional<SavedCheckpoint> open(const std::string& tag = "") const;
  // Whether save() calls `write_model` on this rank.
  bool writes_model() const { return disks_.leads(rank_); }
  const Disks& disks() const { return disks_; }

 private:
  comm::Communicator& communicator_;
  CheckpointFolder folder_;
  int64_t keep_last_, copies_;
  int rank_, world_size_;
  Disks disks_;
  int64_t saves_ = 0;
  CheckpointWriter writer_;
};

}  // namespace onebit::checkpoint
