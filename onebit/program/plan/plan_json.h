// A plan as JSON, for programs. docs/plan.md lists the keys.
#pragma once

#include "onebit/ground/base/json_fwd.h"
#include "onebit/program/plan/run_plan.h"

namespace onebit::plan {

Json to_json(const RunPlan& plan);

}  // namespace onebit::plan
