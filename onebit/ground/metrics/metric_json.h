// The values of metrics in JSON, in the log of a run and beside its best model: an integer is a
// count, any other number is not, and a value that is not finite is null.
#pragma once

#include "onebit/ground/base/json_fwd.h"
#include "onebit/ground/metrics/metric.h"

namespace onebit::metrics {

Json value_in_json(const Metric& metric);
bool is_count(const Json& value);

}  // namespace onebit::metrics
