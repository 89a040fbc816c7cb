// The disk space that the checkpoints of a run will take, computed before the first step: a run
// must not fail hours later because the first checkpoint of its compressed phase does not fit.
#pragma once

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

#include "onebit/exchange/engine/engine.h"
#include "onebit/training/training/session_config.h"

namespace onebit::training {

struct CheckpointSpace {
  int64_t first_bytes = 0;       // on disk, of a checkpoint of the phase in which the run begins
  int64_t compressed_bytes = 0;  // of a checkpoint of the compressed phase; 0: no such phase
  int64_t to_come = 0;           // number of checkpoints still to be written
  int64_t keep_last = 1;

  int64_t largest_bytes() const { return std::max(first_bytes, compressed_bytes); }
};

// On one disk, which stores the model and the fraction `share` of the shards (1: all of them).
CheckpointSpace space_of_checkpoints(engine::Engine& engine, const SessionConfig& session,
                                     double share = 1);

// Bytes that a rank copies to write its part while training continues: its shard of the
// `saved_bytes` of all ranks, and the values if it also writes the model.
int64_t checkpoint_copy_bytes(const ParameterTable& table, int64_t saved_bytes, int world_size,
                              bool writes_model);
// In the current phase or, if larger, in one that the run reaches.
int64_t checkpoint_copy_bytes(engine::Engine& engine, int world_size, bool writes_model);

// "4.03 GB, 25.6 GB after the freeze; ..."
std::string describe(const CheckpointSpace& space);

// Returns a warning if the disk fills before old checkpoints are removed, else an empty string.
// `kept` checkpoints exist already. Error: `free_bytes` is less than the largest checkpoint takes.
std::string check_space(const CheckpointSpace& space, int64_t kept, int64_t free_bytes,
                        const std::string& place);

// Free bytes of a folder's file system; empty if it does not report them.
std::optional<int64_t> free_bytes_at(const std::filesystem::path& folder);

}  // namespace onebit::training
