// A machine of round figures and small recipes for the tests of plans.
#pragma once

#include <string>

#include "onebit/program/plan/run_plan.h"

namespace onebit::plan {

// 8 threads, 16 GB, 100 GFLOP/s of products and 1e12 of all else, so that products are all that
// counts.
costs::MachineCosts round_machine();

// bert-tiny, batches of 64 in micro-batches of 8, sequences of 32, 100 steps. `more` is put before
// the closing brace: keys with a comma before them, the optimizer among them.
pretrain::PretrainingConfig small_config(
    const std::string& more = R"(, "optimizer": {"type": "AdamW"})");

// Two hosts with one rank each, 1 Gb/s.
PlannedCluster two_hosts();

}  // namespace onebit::plan
