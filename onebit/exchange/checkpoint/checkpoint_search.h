// The checkpoints of a run over all its disks, judged by file names and state.json.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "onebit/exchange/checkpoint/checkpoint_candidate.h"
#include "onebit/exchange/checkpoint/checkpoint_contents.h"
#include "onebit/exchange/checkpoint/checkpoint_folder.h"
#include "onebit/exchange/checkpoint/disks.h"
#include "onebit/exchange/comm/communicator.h"

namespace onebit::checkpoint {

// A checkpoint whose state.json is not readable on any disk.
struct UnreadableCheckpoint {
  std::string tag, problem;
};

struct FoundCheckpoints {
  std::vector<DiskContents> contents;  // [disks]
  // Those published on at least one disk, the newest first; a checkpoint that no disk has published
  // was never finished. They point into `contents`.
  std::vector<CheckpointCandidate> candidates;
  std::vector<UnreadableCheckpoint> unreadable;  // the newest first
  // The tag in some disk's `latest` that does not exist there, if no disk's names an existing one.
  std::optional<std::string> absent_latest;
  // The step of the newest checkpoint that `latest` of a disk names, -1 if none does. Newer ones do
  // not belong to the run any longer, which was reset.
  int64_t last_step = -1;

  std::vector<std::string> tags() const;  // of the candidates, the newest first
};

// Collective.
FoundCheckpoints find_checkpoints(comm::Communicator& communicator, const CheckpointFolder& folder,
                                  const Disks& disks);

// The ranks of each disk read what it holds of the candidate and exchange the defects: a defective
// part is removed from the parts of its disk and added to the flaws. Collective.
void verify_checkpoint(comm::Communicator& communicator, const CheckpointFolder& folder,
                       const Disks& disks, CheckpointCandidate& candidate);

}  // namespace onebit::checkpoint
