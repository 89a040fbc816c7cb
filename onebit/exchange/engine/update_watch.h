// Measures the effect of a step on the values: the largest change of one value in units of the
// learning rate (Adam's stays near 1), and the largest magnitude in some tensors. A diagnostic: it
// copies all values to the host twice.
#pragma once

#include <string>
#include <vector>

#include "onebit/exchange/comm/communicator.h"
#include "onebit/exchange/optim/adam.h"
#include "onebit/exchange/optim/optimizer.h"
#include "onebit/math/tensor/parameter_table.h"

namespace onebit::engine {

struct UpdateSummary {
  double largest_update = 0;  // |change| / learning rate, or 0 if that is 0
  std::string updated_tensor;
  double largest_value = 0;  // after the step, in the watched tensors
  std::string largest_tensor;
};

class UpdateWatch {
 public:
  // Watches the magnitude of the tensors whose name contains `tensors`, or of none if it is empty.
  UpdateWatch(const ParameterTable& table, std::string tensors);

  void before_step();
  // `learning_rate`: the sum of the rates of all updates that the step made.
  UpdateSummary after_step(double learning_rate);

 private:
  const ParameterTable& table_;
  std::string tensors_;
  Tensor before_;
};

// Runs Adam alongside the optimizer of a run, on the same gradients at the same values, and
// compares the movement of the values with what Adam's updates would have made, in distance and
// direction. A diagnostic for compressed optimizers: it averages every step's gradients densely on
// the host, which costs many times what it observes.
struct AdamComparison {
  double distance = 0;  // of the values, without decay, over Adam's. 0: Adam has not moved them
  double cosine = 0;    // of the angle between the two
};

class AdamShadow {
 public:
  // `clipping`: the largest norm of the averaged gradient, which is available here. 0: no limit.
  AdamShadow(const ParameterTable& table, const optim::AdamOptions& adam, double clipping,
             comm::Communicator& communicator);

  // Called before and after the optimizer's step, with the scale of gradients before clipping.
  // `averaged`: the table's gradients are averages over ranks. Collective if they are not.
  void before_step(bool averaged, const optim::StepInput& input);
  void after_step(const optim::StepInput& input);
  // Compares the movement since the last comparison.
  AdamComparison compare();

 private:
  template <class Body>
  void visit(const optim::StepInput& input, const Body& body) const;

  const ParameterTable& table_;
  optim::AdamOptions adam_options_;
  double clipping_;
  comm::Communicator& communicator_;
  std::vector<ParameterTable::DecayRange> ranges_;
  std::vector<float> gradients_, values_;
  std::vector<double> momentum_, variance_, moved_, adam_;
  double momentum_weight_ = 0, variance_weight_ = 0;
  bool happens_ = true;  // whether the step passed to before_step() will be applied
};

}  // namespace onebit::engine
