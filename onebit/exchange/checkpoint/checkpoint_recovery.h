// Finds the checkpoint from which a run continues: the newest intact one, over all disks together
// if every host keeps its own part. Parts that a disk lacks are read from a disk that has them.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "onebit/exchange/checkpoint/checkpoint_folder.h"
#include "onebit/exchange/checkpoint/disks.h"
#include "onebit/exchange/comm/communicator.h"

namespace onebit::checkpoint {

struct RecoveredCheckpoint {
  std::string tag;
  // For each shard the rank that reads it for this one, -1 if it is on this rank's own disk.
  std::vector<int> holders;
  bool fetches = false;             // some rank, not necessarily this one, needs shards of others
  std::vector<std::string> report;  // the source disks of its parts. Empty on one disk
  std::vector<std::string> other_tags;  // of the same run, newest first
};

// Without a tag: the newest checkpoint that `latest` of some disk names, or an older one, or
// nothing if no disk holds any. Afterwards the folder `tag` of every disk has state.json and the
// model. A checkpoint that is not intact is skipped with a warning that names the missing parts and
// the disks that kept them. Collective. Errors, identical on every rank: no checkpoint is intact.
// The one of the tag is not, with the newest that is. `latest` names one, and none exists. A disk
// is full.
std::optional<RecoveredCheckpoint> recover_checkpoint(comm::Communicator& communicator,
                                                      const CheckpointFolder& folder,
                                                      const Disks& disks, const std::string& tag);

}  // namespace onebit::checkpoint
