// A checkpoint over all disks of a run, each of which holds a part: what exists, what is missing,
// and which disks kept it.
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "onebit/exchange/checkpoint/checkpoint_contents.h"

namespace onebit::checkpoint {

inline constexpr int kNoShard = -1;

// A defect found when a disk was read.
struct CheckpointFlaw {
  size_t disk = 0;
  int shard = kNoShard;  // the defective shard; kNoShard: the files that every disk has
  std::string text;      // includes the disk and the path
};

struct CheckpointCandidate {
  std::string tag, generation;
  int64_t step = 0;
  int world_size = 0;
  bool published = false;                 // on at least one disk
  std::vector<const HeldCheckpoint*> on;  // [disks], null for a disk that holds nothing of it
  std::vector<std::vector<int>> shards;   // [disks], ascending; intact as far as known
  std::vector<bool> common;               // [disks], likewise for the files that every disk has
  std::vector<CheckpointFlaw> flaws;

  bool has(size_t disk, int shard) const;
  std::vector<int> missing() const;  // the shards that no disk has
  bool complete() const;
  // The shards that state.json assigns to the disk of this name, if each is kept more than once;
  // otherwise none.
  std::set<int> kept_with_copies_by(const std::string& name) const;
  // Whether it was written with every host keeping its own part.
  bool of_several_disks() const;
  // Why it cannot be used.
  std::string reason() const;
};

// "shards 0-3, 6".
std::string shard_list(const std::vector<int>& shards);

}  // namespace onebit::checkpoint
