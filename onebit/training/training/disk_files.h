// Distributes the files of a run's folder other than checkpoints if hosts have separate disks: a
// disk that is new to the run, or was absent, receives them from one that has them.
#pragma once

#include <cstdint>
#include <functional>

#include "onebit/exchange/checkpoint/disks.h"
#include "onebit/exchange/comm/communicator.h"
#include "onebit/ground/base/json_fwd.h"

namespace onebit::training {

// Whether the kept model of the evaluation `one` is preferred to the one of `other`. Both are the
// contents of an evaluation.json.
using IsPreferred = std::function<bool(const Json& one, const Json& other)>;

// Afterwards every disk has a metrics.jsonl with all updates up to `step` that any disk has, the
// TensorBoard events up to it, and the same kept model with its evaluation.json. Called before a
// run is resumed at `step`. Collective. Errors: a full disk, or another process writes to the
// folder.
void share_run_files(comm::Communicator& communicator, const checkpoint::Disks& disks,
                     const Path& output, int64_t step, const IsPreferred& is_preferred);

}  // namespace onebit::training
