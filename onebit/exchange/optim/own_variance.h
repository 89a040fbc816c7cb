// The second moment after the freeze, in the memory of Adam's: d = sqrt(variance) + eps divides the
// gradients that are sent from then on. On two levels each rank of a node has its share of it
// (levels.h).
#pragma once

#include "onebit/exchange/optim/levels.h"
#include "onebit/math/tensor/state.h"
#include "onebit/math/tensor/tensor.h"

namespace onebit::optim {

struct OwnVariance {
  // f32 [elements of the share]. This source's own, bias-corrected; 0 marks a still entry.
  Tensor tensor;

  View view() const { return tensor.view(); }
  // For another number of sources than saved, each loads the mean over the saved ones. Collective.
  void save(StateWriter&) const;
  void load(const StateReader&, const Levels&);
};

// On one level both return the same memory with the same numbers. On two, the first keeps this
// rank's share, and the second starts from zeros. Peak memory does not exceed that of the whole:
// `scratch`, f32 [whole elements], is zero afterwards.
Tensor share_in_memory_of(Tensor&& whole, const Levels&, View scratch);
Tensor whole_in_memory_of(Tensor&& share, const Levels&);

}  // namespace onebit::optim
