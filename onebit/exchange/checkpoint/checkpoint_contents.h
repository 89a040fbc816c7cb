// What a disk holds of the checkpoints of a run: all of them, or a part if every host keeps its own
// (docs/checkpoint-format.md).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "onebit/exchange/checkpoint/checkpoint_folder.h"
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

}  // namespace onebit::checkpoint
