// The two moments of Adam over the flat buffer, and one step of Adam with them.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "onebit/comm/communicator.h"
#include "onebit/ops/adam_update.h"
#include "onebit/optim/optimizer.h"
#include "onebit/optim/optimizer_config.h"
#include "onebit/tensor/tensor.h"

namespace onebit::optim {

class Moments {
 public:
  Moments(const params::Table& table, double weight_decay);

  // One Adam step from table.gradients().
  void step(Context&, params::Table&, const OptimizerConfig&, const StepInput&);

  View momentum() const { return momentum_.view(); }  // f32 [elements]
  View variance() const { return variance_.view(); }  // f32 [elements]
  // What to divide the moments by for their unbiased values: 1 - product of the betas so far, so
  // that it is right for a momentum that is cycled too. 1 without bias correction.
  double momentum_weight(const OptimizerConfig&) const;
  double variance_weight(const OptimizerConfig&) const;
  void advance_momentum_weight(double beta1);
  void advance_variance_weight(double beta2);
  // What variance_weight() will be after the next update.
  double next_variance_weight(const OptimizerConfig&) const;

  std::span<const ops::UpdateRange> ranges() const { return ranges_; }

  void save(params::StateWriter&) const;
  void load(const params::StateReader&);
  // Without the momentum, the variance this rank's own. Other ranks than saved it start from the
  // mean over those: to load is collective.
  void save_own_variance(params::StateWriter&) const;
  void load_own_variance(const params::StateReader&, comm::Communicator&);
  int64_t size_bytes() const;

 private:
  void save_weights(params::StateWriter&) const;
  void load_weights(const params::StateReader&);

  Tensor momentum_, variance_;
  double momentum_weight_ = 0, variance_weight_ = 0;
  std::vector<ops::UpdateRange> ranges_;
};

}  // namespace onebit::optim
