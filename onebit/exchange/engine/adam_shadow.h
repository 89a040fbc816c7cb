// Runs Adam alongside the optimizer of a run, on the same gradients at the same values, and
// compares the movement of the values with what Adam's updates would have made, in distance and
// direction. A diagnostic for compressed optimizers: it averages every step's gradients densely on
// the host, which costs many times what it observes.
#pragma once

#include <vector>

#include "onebit/exchange/comm/communicator.h"
#include "onebit/exchange/optim/adam_options.h"
#include "onebit/exchange/optim/optimizer.h"

namespace onebit::engine {

struct AdamComparison {
  double distance = 0;  // of the values, without decay, over Adam's; 0: Adam has not moved them
  double cosine = 0;    // of the angle between the two
};

class AdamShadow {
 public:
  // `clipping`: the largest norm of the averaged gradient, which is available here; 0: no limit.
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
