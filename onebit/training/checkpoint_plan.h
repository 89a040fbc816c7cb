// What the checkpoints of a run will take on the disk, reckoned before the first step: a run must
// not find hours later that its disk is too small for the first one of its compressed phase.
#pragma once

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

#include "onebit/engine/engine.h"

namespace onebit::training {

struct CheckpointPlan {
  int64_t first_bytes = 0;       // of one made in the phase that the run begins in
  int64_t compressed_bytes = 0;  // of one made in the compressed phase; 0: the run has none
  int64_t to_come = 0;           // how many the run writes from here on
  int64_t keep_last = 1;

  int64_t largest_bytes() const { return std::max(first_bytes, compressed_bytes); }
};

CheckpointPlan plan_checkpoints(engine::Engine& engine);

// "4.03 GB, 25.6 GB after the freeze; ..."
std::string describe(const CheckpointPlan& plan);

// What there is to warn of: the disk fills before old checkpoints are removed; else empty. `kept`
// stand already. Error: not even the largest one fits into `free_bytes`.
std::string check_space(const CheckpointPlan& plan, int64_t kept, int64_t free_bytes,
                        const std::string& place);

// Of the file system of a folder; empty where it does not tell.
std::optional<int64_t> free_bytes_at(const std::filesystem::path& folder);

}  // namespace onebit::training
