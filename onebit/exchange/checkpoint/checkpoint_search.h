// The checkpoints of a run over all its disks, judged by file names and state.json.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "onebit/exchange/checkpoint/checkpoint_contents.h"
#include "onebit/exchange/checkpoint/checkpoint_folder.h"
#include "onebit/exchange/checkpoint/disks.h"
#include "onebit/exchange/comm/communicator.h"

namespace onebit::checkpoint {

// A checkpoint over all disks of a run, each of which holds a part: what exists, what is missing,
// and which disks kept it.
inline constexpr int kNoShard = -1;

// A defect found when a disk was read.
struct CheckpointFlaw {
  size_t disk = 0;
  int shard = kNoShard;  // the defective shard. kNoShard: the files that every disk has
  std::string text;      // includes the disk and the path
};

struct CheckpointCandidate {
  std::string tag, generation;
  int64_t step = 0;
  int world_size = 0;
  bool published = false;                 // on at least one disk
  std::vector<const HeldCheckpoint*> on;  // [disks], null for a disk that holds nothing of it
  std::vector<std::vector<int>> shards;   // [disks], ascending. Intact as far as known
  std::vector<bool> common;               // [disks], likewise for the files that every disk has
  std::vector<CheckpointFlaw> flaws;

  bool has(size_t disk, int shard) const;
  std::vector<int> missing() const;  // the shards that no disk has
  bool complete() const;
  // The shards that state.json assigns to the disk of this name, if each is kept more than once.
  // Otherwise none.
  std::set<int> kept_with_copies_by(const std::string& name) const;
  // Whether it was written with every host keeping its own part.
  bool of_several_disks() const;
  // Why it cannot be used.
  std::string reason() const;
};

// "shards 0-3, 6".
std::string shard_list(const std::vector<int>& shards);

// A checkpoint whose state.json is not readable on any disk.
struct UnreadableCheckpoint {
  std::string tag, problem;
};

struct FoundCheckpoints {
  std::vector<DiskContents> contents;  // [disks]
  // The ones published on at least one disk, the newest first. A checkpoint that no disk has
  // published was never finished. They point into `contents`.
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
