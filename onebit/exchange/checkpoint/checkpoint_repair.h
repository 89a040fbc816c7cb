// Completes the disks that lack parts of a checkpoint. All disks together have it, and a disk that
// has a part sends it to those that lack it.
#pragma once

#include <string>
#include <vector>

#include "onebit/exchange/checkpoint/checkpoint_folder.h"
#include "onebit/exchange/checkpoint/checkpoint_search.h"
#include "onebit/exchange/checkpoint/disks.h"
#include "onebit/exchange/comm/communicator.h"

namespace onebit::checkpoint {

// Afterwards every disk has the folder of the tag under its final name, with state.json and the
// model. It also has the shards that it should have and had lost or damaged, except on a disk that
// is full, which does not prevent the run. Adds to `report` what was repaired and what was not.
// Collective. Errors, identical on every rank: a disk cannot take state.json or the model.
void complete_disks(comm::Communicator& communicator, const CheckpointFolder& folder,
                    const Disks& disks, CheckpointCandidate& candidate,
                    std::vector<std::string>& report);

}  // namespace onebit::checkpoint
