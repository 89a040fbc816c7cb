// The moments of an optimizer: both of Adam, and the second alone after the freeze.
#pragma once

#include "onebit/exchange/optim/state_layout.h"
#include "onebit/exchange/optim/topology.h"
#include "onebit/math/tensor/parameter_table.h"
#include "onebit/math/tensor/tensor.h"

namespace onebit::optim {

// The two moments of Adam, first and second.
struct Moments {
  Tensor momentum;  // f32 [elements]  running mean of the gradient
  Tensor variance;  // f32 [elements]  running mean of its square. Neither is bias-corrected

  static Moments zeros(const ParameterTable& table);
  void save(StateWriter&) const;
  void load(const StateReader&);
  static StateLayout layout();
};

// The second moment after the freeze, in the memory of Adam's: d = sqrt(variance) + eps divides the
// gradients that are sent from then on. On two levels each rank of a node has its share of it
// (topology.h).
struct OwnVariance {
  // f32 [elements of the share]. This source's own, bias-corrected. 0 marks a still entry.
  Tensor tensor;

  View view() const { return tensor.view(); }
  // For another number of sources than saved, each loads the mean over the saved ones. Collective.
  static StateLayout layout();
  void save(StateWriter& writer) const { save_buffer(writer, layout()[0], view()); }
  void load(const StateReader& reader, const Topology& topology) const {
    load_buffer(reader, layout()[0], topology, view());
  }
};

// On one level both return the same memory with the same numbers. On two, the first keeps this
// rank's share, and the second starts from zeros. Peak memory does not exceed the memory of the
// whole: `scratch`, f32 [whole elements], is zero afterwards.
Tensor share_in_memory_of(Tensor&& whole, const Topology&, View scratch);
Tensor whole_in_memory_of(Tensor&& share, const Topology&);

}  // namespace onebit::optim
