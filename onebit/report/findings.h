// What looks wrong, or is worth knowing, in a run: read from its history by fixed rules, each with
// the figure that it rests on and with what to do about it.
#pragma once

#include <string>
#include <vector>

#include "onebit/report/run_history.h"

namespace onebit::report {

enum class Severity { kNote, kWarning };

struct Finding {
  Severity severity = Severity::kNote;
  std::string text;  // one or two sentences
};

// Warnings first.
std::vector<Finding> find_problems(const RunHistory& run);

// Seconds a step in the middle of the steps that the phases named so or, with `compressed` false,
// all others have; 0 without one.
double median_step_seconds(const RunHistory& run, bool compressed);

}  // namespace onebit::report
