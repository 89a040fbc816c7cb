#include "onebit/ground/metrics/metric.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>

#include "onebit/ground/base/json.h"

namespace onebit::metrics {

double value_of(const std::vector<Metric>& metrics, std::string_view name) {
  for (const Metric& metric : metrics) {
    if (metric.name == name) return metric.value;
  }
  return std::numeric_limits<double>::quiet_NaN();
}

std::string text_of(const std::vector<Metric>& metrics, std::string_view first) {
  std::string text = fmt::format("{} {:.4f}", first, value_of(metrics, first));
  for (const Metric& metric : metrics) {
    if (metric.name == first) continue;
    text += metric.is_count
                ? fmt::format(", {} {}", metric.name, static_cast<int64_t>(metric.value))
                : fmt::format(", {} {:.4f}", metric.name, metric.value);
  }
  return text;
}

std::string nan_note_of(const std::vector<Metric>& metrics) {
  bool has_nan = false;
  for (const Metric& metric : metrics) {
    const bool is_correlation =
        metric.name.ends_with("pearson") || metric.name.ends_with("spearman");
    // A loss that is nan, too, has another cause: the model's values.
    if (std::isnan(metric.value) && !is_correlation) return "";
    has_nan = has_nan || std::isnan(metric.value);
  }
  return has_nan ? "nan: predictions or true values that are all the same have no correlation\n"
                 : "";
}

std::vector<std::string> distinct_names(std::initializer_list<std::span<const MetricName>> lists) {
  std::vector<std::string> names;
  for (const std::span<const MetricName> list : lists) {
    for (const MetricName& metric : list) {
      if (std::find(names.begin(), names.end(), metric.name) == names.end()) {
        names.emplace_back(metric.name);
      }
    }
  }
  return names;
}

Json value_in_json(const Metric& metric) {
  return metric.is_count ? Json(static_cast<int64_t>(metric.value)) : Json(metric.value);
}

bool is_count(const Json& value) {
  return value.is_number_integer();
}

}  // namespace onebit::metrics
