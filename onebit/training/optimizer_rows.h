// What the table at the start says of the optimizer, its rate and its 1-bit phase.
#pragma once

#include "onebit/engine/config.h"
#include "onebit/optim/schedule.h"
#include "onebit/training/rows.h"

namespace onebit::training {

Rows optimizer_rows(const engine::EngineConfig& config, const optim::Schedule& schedule,
                    int world_size);

}  // namespace onebit::training
