// A plan as tables and a curve for a terminal.
#pragma once

#include <string>

#include "onebit/program/plan/run_plan.h"

namespace onebit::plan {

// `measured`: where the figures of the host come from, "in here.json".
std::string plan_text(const RunPlan& plan, const std::string& measured);

}  // namespace onebit::plan
