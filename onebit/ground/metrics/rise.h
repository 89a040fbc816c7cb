// Whether a noisy series ends higher than it has been.
#pragma once

#include <optional>

#include "onebit/ground/metrics/run_history.h"

namespace onebit::metrics {

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
