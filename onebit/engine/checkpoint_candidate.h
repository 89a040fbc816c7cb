// A checkpoint over all disks of a run, of which each holds a part: what is there, what is missing,
// and who kept it.
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "onebit/engine/checkpoint_contents.h"

namespace onebit::engine {

inline constexpr int kNoShard = -1;

// What reading a disk has shown.
struct CheckpointFlaw {
  size_t disk = 0;
  int shard = kNoShard;  // of a shard; else of the files that every disk has
  std::string text;      // with the disk and the path
};

struct CheckpointCandidate {
  std::string tag, generation;
  int64_t step = 0;
  int world_size = 0;
  bool published = false;                 // on some disk
  std::vector<const HeldCheckpoint*> on;  // [disks], null where a disk has nothing of it
  std::vector<std::vector<int>> shards;  // [disks], ascending, those that are whole as far as known
  std::vector<bool> common;              // [disks], likewise of the files that every disk has
  std::vector<CheckpointFlaw> flaws;

  bool has(size_t disk, int shard) const;
  std::vector<int> missing() const;  // shards that no disk has
  bool whole() const;
  // Shards that state.json gives to the disk of this name, where each is kept more than once; else
  // none.
  std::set<int> kept_with_copies_by(const std::string& name) const;
  // It was written where every host keeps its own part.
  bool of_several_disks() const;
  // Why it cannot be used.
  std::string reason() const;
};

// "shards 0-3, 6".
std::string shard_list(const std::vector<int>& shards);

}  // namespace onebit::engine
