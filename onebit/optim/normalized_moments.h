// The moments of 1-bit Adam after the freeze, in the memory of Adam's: d = sqrt(variance) + eps
// divides the gradients that travel from then on, and the momentum is a running mean of such
// quotients.
#pragma once

#include "onebit/comm/communicator.h"
#include "onebit/optim/moments.h"

namespace onebit::optim {

struct NormalizedMoments {
  Tensor momentum;  // f32 [elements]  of g / d, as it has arrived: the same on every rank
  Tensor variance;  // f32 [elements]  this rank's own, without bias; 0: the entry stays still

  // Saves the variance alone; the owners save the momentum (GradientSigns). On another number of
  // ranks than saved, every rank loads the mean over the saved ones: collective.
  void save(params::StateWriter&) const;
  void load(const params::StateReader&, comm::Communicator&);
  int64_t size_bytes() const { return momentum.view().size_bytes() + variance.view().size_bytes(); }
};

// Each takes over the memory of the other; the caller converts or overwrites the numbers.
NormalizedMoments in_memory_of(Moments&& moments);
Moments in_memory_of(NormalizedMoments&& moments);

}  // namespace onebit::optim
