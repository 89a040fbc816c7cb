// Restores shards of a checkpoint on disks that should have them and have lost or damaged them.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "onebit/exchange/checkpoint/checkpoint_folder.h"
#include "onebit/exchange/checkpoint/disks.h"
#include "onebit/exchange/comm/communicator.h"

namespace onebit::checkpoint {

struct ShardRepair {
  int shard = 0;
  int from = 0, to = 0;  // disks, which differ
};

// Makes the repairs, the same list on every rank, in the folder `tag` of a checkpoint of
// `world_size` shards, which every disk has. Each shard is written to a temporary file, synced,
// verified and renamed. Returns in the order of the repairs why those to a disk failed (it is
// full); empty: success. A failure does not prevent the run, so it is no error. Collective.
std::vector<std::string> repair_shards(comm::Communicator& communicator,
                                       const CheckpointFolder& folder, const Disks& disks,
                                       const std::string& tag, int world_size,
                                       std::span<const ShardRepair> repairs);

}  // namespace onebit::checkpoint
