// The checkpoints of a run over all its disks, as far as the names of files and state.json say.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "onebit/comm/communicator.h"
#include "onebit/engine/checkpoint_candidate.h"
#include "onebit/engine/checkpoint_contents.h"
#include "onebit/engine/checkpoint_folder.h"
#include "onebit/engine/disks.h"

namespace onebit::engine {

// One whose state.json no disk has in a form that can be read.
struct UnreadableCheckpoint {
  std::string tag, problem;
};

struct FoundCheckpoints {
  std::vector<DiskContents> contents;  // [disks]
  // Those that a disk has published, the newest first; what no disk has published was never
  // finished. They point into `contents`.
  std::vector<CheckpointCandidate> candidates;
  std::vector<UnreadableCheckpoint> unreadable;  // the newest first
  // What `latest` of some disk says that is not held there, where no disk's names one that is.
  std::optional<std::string> absent_latest;
  // Of the newest that `latest` of a disk names, -1 where none does. What is newer is no part of
  // the run any more, which was taken back.
  int64_t last_step = -1;

  std::vector<std::string> tags() const;  // of the candidates, the newest first
};

// Collective.
FoundCheckpoints find_checkpoints(comm::Communicator& communicator, const CheckpointFolder& folder,
                                  const Disks& disks);

// The ranks of each disk read what it holds of the candidate, and send each other what is wrong:
// that is no longer among what the disks have, but among the flaws. Collective.
void verify_checkpoint(comm::Communicator& communicator, const CheckpointFolder& folder,
                       const Disks& disks, CheckpointCandidate& candidate);

}  // namespace onebit::engine
