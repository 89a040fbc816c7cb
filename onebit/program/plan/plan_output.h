// A plan as tables and a curve for a terminal.
#pragma once

#include <string>

#include "onebit/ground/base/json_fwd.h"
#include "onebit/program/plan/run_plan.h"

namespace onebit::plan {

// `measured`: where the figures of the host come from, "in here.json".
std::string plan_text(const RunPlan& plan, const std::string& measured);

// A plan as JSON, for programs. docs/plan.md lists the keys.
Json to_json(const RunPlan& plan);

// A plan as a picture: samples per second against the number of ranks.

// An SVG file.
std::string plan_picture(const RunPlan& plan);

}  // namespace onebit::plan
