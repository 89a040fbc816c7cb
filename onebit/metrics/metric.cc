#include "onebit/metrics/metric.h"

#include <limits>

namespace onebit::metrics {

double value_of(const std::vector<Metric>& metrics, std::string_view name) {
  for (const Metric& metric : metrics) {
    if (metric.name == name) return metric.value;
  }
  return std::numeric_limits<double>::quiet_NaN();
}

}  // namespace onebit::metrics
