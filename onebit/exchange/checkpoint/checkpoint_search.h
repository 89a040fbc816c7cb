// Which checkpoints of a run exist: on one disk, which holds all of each, or a part if every host
// keeps its own (docs/checkpoint-format.md), and over all disks. Judged by file names and
// state.json, except where a function reads a part for its defects.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "onebit/exchange/checkpoint/checkpoint_folder.h"
#include "onebit/exchange/checkpoint/disks.h"
#include "onebit/exchange/comm/communicator.h"
#include "onebit/ground/base/json.h"

namespace onebit::checkpoint {

// A checkpoint as held by one disk.
struct HeldCheckpoint {
  std::string tag;
  std::string generation;  // equal on all disks that hold parts of the same checkpoint
  int64_t step = 0;
  int world_size = 0;
  bool published = true;  // false: complete on this disk, but not yet under its final name
  std::vector<int> shards;
  // The files that every disk has: state.json and the files of model/ with their sizes. Empty:
  // damaged.
  std::vector<std::pair<std::string, int64_t>> common_files;
  Json disks;           // as written in state.json. Null on one disk
  std::string problem;  // why its state.json cannot be read. Nothing else is known then
};

struct DiskContents {
  std::vector<HeldCheckpoint> held;
  std::string latest;  // the tag of a held checkpoint. Empty: none
  // The tag in the file `latest` if no such checkpoint is held.
  std::optional<std::string> absent_latest = {};

  Json to_json() const;
  static DiskContents from_json(const Json& json);
};

// Reads only names, sizes and the contents of state.json.
DiskContents contents_of_disk(const CheckpointFolder& folder);

// The folder of a held checkpoint.
Path folder_of(const CheckpointFolder& folder, const HeldCheckpoint& held);

// Reads a shard, or the files that every disk has. Returns its defect. Empty: none.
std::string flaw_of_shard(const Path& folder, int shard, int world_size);
std::string flaw_of_common_files(const Path& folder, const HeldCheckpoint& held);

inline constexpr int kNoShard = -1;

// A defect found when a disk was read.
struct CheckpointFlaw {
  size_t disk = 0;
  int shard = kNoShard;  // the defective shard. kNoShard: the files that every disk has
  std::string text;      // includes the disk and the path
};

// A checkpoint over all disks of a run, each of which holds a part: what exists, what is missing,
// and which disks kept it.
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

}  // namespace onebit::checkpoint
