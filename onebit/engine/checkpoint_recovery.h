// Which checkpoint a run continues from: the newest that is whole, over all disks together where
// every host keeps its own part. What a disk lacks of it comes from one that has it.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "onebit/comm/communicator.h"
#include "onebit/engine/checkpoint_folder.h"
#include "onebit/engine/disks.h"

namespace onebit::engine {

struct RecoveredCheckpoint {
  std::string tag;
  // By shard the rank that reads it for this one, -1 where it lies on this rank's own disk.
  std::vector<int> holders;
  bool fetches = false;             // some rank, not necessarily this one, needs shards of others
  std::vector<std::string> report;  // what came from which disk; empty on one
  std::vector<std::string> other_tags;  // of the same run, newest first
};

// Without a tag the newest checkpoint that `latest` of some disk names or that is older; nothing
// where no disk holds any. Afterwards the folder `tag` of every disk has state.json and the model.
// A checkpoint that is not whole is passed over with a warning that says what is missing and who
// kept it. Collective. Errors, on every rank with the same words: no checkpoint is whole; the one
// of the tag is not, with the newest that is; `latest` names none, and none is there; a full disk.
std::optional<RecoveredCheckpoint> recover_checkpoint(comm::Communicator& communicator,
                                                      const CheckpointFolder& folder,
                                                      const Disks& disks, const std::string& tag);

}  // namespace onebit::engine
