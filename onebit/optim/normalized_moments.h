// What becomes of Adam's moments when 1-bit Adam freezes, in their memory: d = sqrt(variance) + eps
// divides the gradients that travel from then on, and the momentum is one of such quotients.
#pragma once

#include "onebit/comm/communicator.h"
#include "onebit/optim/moments.h"

namespace onebit::optim {

struct NormalizedMoments {
  Tensor momentum;  // f32 [elements]  of g / d, as it has arrived: the same on every rank
  Tensor variance;  // f32 [elements]  this rank's own, without bias; 0: the entry stays still

  // The momentum is saved by those who own it (GradientSigns), here the variance. Other ranks than
  // saved it start from the mean over those: to load is collective.
  void save(params::StateWriter&) const;
  void load(const params::StateReader&, comm::Communicator&);
  int64_t size_bytes() const { return momentum.view().size_bytes() + variance.view().size_bytes(); }
};

// Each takes over the memory of the other, whose numbers are to be converted or overwritten.
NormalizedMoments in_memory_of(Moments&& moments);
Moments in_memory_of(NormalizedMoments&& moments);

}  // namespace onebit::optim
