// A plan as a picture: samples per second against the number of ranks.
#pragma once

#include <string>

#include "onebit/program/plan/run_plan.h"

namespace onebit::plan {

// An SVG file.
std::string plan_picture(const RunPlan& plan);

}  // namespace onebit::plan
