// Problems and notable facts of a run, derived from its history by fixed rules. Each finding gives
// the figure that it is based on and what to do about it.
#pragma once

#include <string>
#include <vector>

#include "onebit/ground/metrics/run_history.h"

namespace onebit::metrics {

enum class Severity { kNote, kWarning };

struct Finding {
  Severity severity = Severity::kNote;
  std::string text;  // one or two sentences
};

// All findings, warnings first.
std::vector<Finding> find_problems(const RunHistory& run);

// Median seconds of a step, over the steps of the compressed phase or, with `compressed` false,
// over all others. It is 0 if there is none.
double median_step_seconds(const RunHistory& run, bool compressed);

}  // namespace onebit::metrics
