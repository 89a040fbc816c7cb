// Measures the effect of a step on the values: the largest change of one value in units of the
// learning rate (Adam's stays near 1), and the largest magnitude in some tensors. A diagnostic: it
// copies all values to the host twice.
#pragma once

#include <string>

#include "onebit/math/tensor/parameter_table.h"

namespace onebit::engine {

struct UpdateSummary {
  double largest_update = 0;  // |change| / learning rate; 0 if that is 0
  std::string updated_tensor;
  double largest_value = 0;  // after the step, in the watched tensors
  std::string largest_tensor;
};

class UpdateWatch {
 public:
  // Watches the magnitude of the tensors whose name contains `tensors`; of none if it is empty.
  UpdateWatch(const ParameterTable& table, std::string tensors);

  void before_step();
  // `learning_rate`: the sum of the rates of all updates that the step made.
  UpdateSummary after_step(double learning_rate);

 private:
  const ParameterTable& table_;
  std::string tensors_;
  Tensor before_;
};

}  // namespace onebit::engine
