// The moments of 1-bit Adam after the freeze, in the memory of Adam's: d = sqrt(variance) + eps
// divides the gradients that travel from then on, and the momentum is a running mean of such
// quotients. On two levels each rank of a node has its share of them (levels.h).
#pragma once

#include "onebit/optim/levels.h"
#include "onebit/optim/moments.h"

namespace onebit::optim {

struct NormalizedMoments {
  // f32 [elements of the share]. The momentum of g / d as it has arrived: the same in every source.
  Tensor momentum;
  Tensor variance;  // this source's own, without bias; 0: the entry stays still

  // Saves the variance alone; the owners save the momentum (SignExchange). For another number of
  // sources than saved, each loads the mean over the saved ones: collective.
  void save(params::StateWriter&) const;
  void load(const params::StateReader&, const Levels&);
  int64_t size_bytes() const { return momentum.view().size_bytes() + variance.view().size_bytes(); }
};

// On one level each takes over the memory of the other; the caller converts or overwrites the
// numbers. On two, the first keeps this rank's share of them, and the second starts from zeros. No
// more memory is held meanwhile than by the whole moments: `scratch`, f32 [whole elements], is
// zero afterwards.
NormalizedMoments in_memory_of(Moments&& moments, const Levels&, View scratch);
Moments in_memory_of(NormalizedMoments&& moments, const Levels&);

}  // namespace onebit::optim
