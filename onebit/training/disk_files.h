// What lies in a run's folder beside its checkpoints, where hosts have disks of their own: a disk
// that is new to the run, or was away, gets it from one that has it.
#pragma once

#include <functional>

#include "onebit/base/json.h"
#include "onebit/comm/communicator.h"
#include "onebit/engine/disks.h"

namespace onebit::training {

// Whether the kept model of the evaluation `one` is to be preferred to that of `other`; both are
// what evaluation.json holds.
using IsPreferred = std::function<bool(const Json& one, const Json& other)>;

// Afterwards every disk has a metrics.jsonl, if any had one, and the same kept model with its
// evaluation.json. Called before a run is resumed. Collective. Errors: a full disk; another process
// writes to the folder.
void share_run_files(comm::Communicator& communicator, const engine::Disks& disks,
                     const Path& output, const IsPreferred& is_preferred);

}  // namespace onebit::training
