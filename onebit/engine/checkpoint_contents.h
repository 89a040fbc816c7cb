// What a disk holds of the checkpoints of a run: all of them, or a part where every host keeps its
// own (docs/checkpoint-format.md).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "onebit/base/json.h"
#include "onebit/engine/checkpoint_folder.h"

namespace onebit::engine {

// A checkpoint as one disk has it.
struct HeldCheckpoint {
  std::string tag;
  std::string generation;  // equal on all disks that hold parts of the same checkpoint
  int64_t step = 0;
  int world_size = 0;
  bool published = true;  // false: whole on this disk, but not under its final name yet
  std::vector<int> shards;
  // What every disk has: state.json and the files of model/ with their sizes. Empty: damaged.
  std::vector<std::pair<std::string, int64_t>> common_files;
  Json disks;           // as written in state.json; null on one disk
  std::string problem;  // why its state.json cannot be read; nothing else is known then
};

struct DiskContents {
  std::vector<HeldCheckpoint> held;
  std::string latest;  // a tag that is held; empty: none
  // What the file `latest` says that is not held.
  std::optional<std::string> absent_latest = {};

  Json to_json() const;
  static DiskContents from_json(const Json& json);
};

// Looks at names and sizes, at the contents of state.json alone.
DiskContents contents_of_disk(const CheckpointFolder& folder);

// The folder of a checkpoint that is held.
Path folder_of(const CheckpointFolder& folder, const HeldCheckpoint& held);

// Reads a shard, or the files that every disk has. Returns what is wrong with it; empty: nothing.
std::string flaw_of_shard(const Path& folder, int shard, int world_size);
std::string flaw_of_common_files(const Path& folder, const HeldCheckpoint& held);

}  // namespace onebit::engine
