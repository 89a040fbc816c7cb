// The disk space that the checkpoints of a run will take, computed before the first step: a run
// must not fail hours later because the first checkpoint of its compressed phase does not fit.
#pragma once

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

#include "onebit/engine/engine.h"
#include "onebit/training/session_config.h"

namespace onebit::training {

struct CheckpointSpace {
  int64_t first_bytes = 0;       // on the disk, of one made in the phase that the run begins in
  int64_t compressed_bytes = 0;  // of one made in the compressed phase; 0: the run has none
  int64_t to_come = 0;           // how many the run writes from here on
  int64_t keep_last = 1;

  int64_t largest_bytes() const { return std::max(first_bytes, compressed_bytes); }
};

// Of one disk: it has the model and `share` of the shards, 1 where all ranks write to it.
CheckpointSpace space_of_checkpoints(engine::Engine& engine, const SessionConfig& session,
                                     double share = 1);

// What a rank copies to write its part beside the training: its shard, and the values where it
// writes the model too. In the phase that the run is in or reaches where more is copied.
int64_t checkpoint_copy_bytes(engine::Engine& engine, int world_size, bool writes_model);

// "4.03 GB, 25.6 GB after the freeze; ..."
std::string describe(const CheckpointSpace& space);

// Returns a warning if the disk fills before old checkpoints are removed, else an empty string.
// `kept` checkpoints exist already. Error: not even the largest one fits into `free_bytes`.
std::string check_space(const CheckpointSpace& space, int64_t kept, int64_t free_bytes,
                        const std::string& place);

// Free bytes of a folder's file system; empty if it does not report them.
std::optional<int64_t> free_bytes_at(const std::filesystem::path& folder);

}  // namespace onebit::training
