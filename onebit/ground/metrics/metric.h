// A number with a name that is passed from a task to the progress line, metrics.jsonl, TensorBoard
// and checkpoints.
#pragma once

#include <initializer_list>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "onebit/ground/base/json_fwd.h"

namespace onebit::metrics {

struct Metric {
  std::string name;
  double value = 0;
  bool is_count = false;   // a whole number, not plotted as a curve
  std::string label = {};  // on the progress line. A metric without one is not shown there
};

struct MetricName {
  const char* name;
  bool smaller_is_better = false;
};

// The value of the metric `name`, or NaN if there is none.
double value_of(const std::vector<Metric>& metrics, std::string_view name);

// "f1 0.9000, accuracy 0.8000, words 144": the metric `first`, then the others in their order.
std::string text_of(const std::vector<Metric>& metrics, std::string_view first);

// "nan: reason" with a line end, if one of them is nan: predictions or true values that are all the
// same have no correlation. Empty otherwise.
std::string nan_note_of(const std::vector<Metric>& metrics);

// The distinct names in these lists, in order of their first occurrence.
std::vector<std::string> distinct_names(std::initializer_list<std::span<const MetricName>> lists);

// The values of metrics in JSON, in the log of a run and beside its best model: an integer is a
// count, any other number is not, and a value that is not finite is null.
Json value_in_json(const Metric& metric);
bool is_count(const Json& value);

}  // namespace onebit::metrics
