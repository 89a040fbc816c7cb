// Problems and notable facts of a run, derived from its history by fixed rules. Each finding gives
// the figure that it is based on and what to do about it.
#pragma once

#include <optional>
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

// How a noisy series ends higher than it has been.
struct Rise {
  double least = 0, least_step = 0;  // the lowest mean over a part, and the step of its middle
  double end = 0;                    // the mean over the last part
  double errors = 0;                 // end - least in standard errors of that difference
};

// Compares the mean of the last part with the least one of the parts before it, for parts of a
// quarter, a sixth, a tenth and a twentieth of the series, each of at least 10 points. A rise is
// more than a tenth of the least mean and more than four standard errors: the least of many means
// is always low, so that less would be found in most series that only vary. Empty for fewer than
// 200 points. All values must be finite.
std::optional<Rise> find_rise(const Series& series);

}  // namespace onebit::metrics
