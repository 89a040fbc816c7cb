#include "onebit/exchange/engine/update_watch.h"

#include <cmath>

namespace onebit::engine {

UpdateWatch::UpdateWatch(const ParameterTable& table, std::string tensors)
    : table_(table), tensors_(std::move(tensors)) {}

void UpdateWatch::before_step() {
  before_ = to_cpu_f32(table_.values());
}

UpdateSummary UpdateWatch::after_step(double learning_rate) {
  const Tensor after = to_cpu_f32(table_.values());
  const float* old_values = before_.data<float>();
  const float* new_values = after.data<float>();
  UpdateSummary summary;
  for (const ParameterEntry& entry : table_.entries()) {
    const bool watched = !tensors_.empty() && entry.name.find(tensors_) != std::string::npos;
    const int64_t end = entry.offset_elements + entry.shape.elements();
    for (int64_t i = entry.offset_elements; i < end; ++i) {
      const double value = new_values[i], change = std::abs(value - old_values[i]);
      if (change > summary.largest_update) {
        summary.largest_update = change;
        summary.updated_tensor = entry.name;
      }
      if (watched && std::abs(value) > summary.largest_value) {
        summary.largest_value = std::abs(value);
        summary.largest_tensor = entry.name;
      }
    }
  }
  summary.largest_update = learning_rate > 0 ? summary.largest_update / learning_rate : 0;
  return summary;
}

}  // namespace onebit::engine
