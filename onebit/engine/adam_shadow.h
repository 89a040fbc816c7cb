// Adam beside the optimizer of a run, from the same gradients at the same values: how far the
// values have gone since the last look, and where to, against how far Adam's updates would have
// taken them. A diagnosis of compressed optimizers: it averages every step's gradients densely on
// the host, which costs many times what it watches.
#pragma once

#include <vector>

#include "onebit/comm/communicator.h"
#include "onebit/optim/adam_options.h"
#include "onebit/optim/optimizer.h"

namespace onebit::engine {

struct AdamComparison {
  double distance = 0;  // of the values without decay, over Adam's; 0: Adam's has not moved
  double cosine = 0;    // of the angle between the two
};

class AdamShadow {
 public:
  // `clipping`: the largest norm of the averaged gradient, which is known here; 0: any.
  AdamShadow(const params::Table& table, const optim::AdamOptions& adam, double clipping,
             comm::Communicator& communicator);

  // Around the optimizer's step, with the scale of gradients that are not clipped yet. `averaged`:
  // the table's gradients are those of all ranks. Collective where they are not.
  void before_step(bool averaged, const optim::StepInput& input);
  void after_step(const optim::StepInput& input);
  // Since the last comparison.
  AdamComparison compare();

 private:
  const params::Table& table_;
  optim::AdamOptions adam_options_;
  double clipping_;
  comm::Communicator& communicator_;
  std::vector<bool> decays_;
  std::vector<float> gradients_, values_;
  std::vector<double> momentum_, variance_, gone_, adam_;
  double momentum_weight_ = 0, variance_weight_ = 0;
};

}  // namespace onebit::engine
