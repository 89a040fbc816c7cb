#include "onebit/ground/metrics/metric_json.h"

#include "onebit/ground/base/json.h"

namespace onebit::metrics {

Json value_in_json(const Metric& metric) {
  return metric.is_count ? Json(static_cast<int64_t>(metric.value)) : Json(metric.value);
}

bool is_count(const Json& value) {
  return value.is_number_integer();
}

}  // namespace onebit::metrics
