// The second moment after the freeze, in the memory of Adam's: d = sqrt(variance) + eps divides the
// gradients that travel from then on. On two levels each rank of a node has its share of it
// (levels.h).
#pragma once

#include "onebit/optim/levels.h"
#include "onebit/params/state.h"
#include "onebit/tensor/tensor.h"

namespace onebit::optim {

struct OwnVariance {
  // f32 [elements of the share]. This source's own, without bias; 0: the entry stays still.
  Tensor tensor;

  View view() const { return tensor.view(); }
  // For another number of sources than saved, each loads the mean over the saved ones: collective.
  void save(params::StateWriter&) const;
  void load(const params::StateReader&, const Levels&);
};

// On one level both are the same memory with the same numbers. On two, the first keeps this rank's
// share of them, and the second starts from zeros. No more memory is held meanwhile than by the
// whole: `scratch`, f32 [whole elements], is zero afterwards.
Tensor share_in_memory_of(Tensor&& whole, const Levels&, View scratch);
Tensor whole_in_memory_of(Tensor&& share, const Levels&);

}  // namespace onebit::optim
