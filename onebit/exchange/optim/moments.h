// The two moments of Adam, first and second.
#pragma once

#include "onebit/math/tensor/parameter_table.h"
#include "onebit/math/tensor/state.h"
#include "onebit/math/tensor/tensor.h"

namespace onebit::optim {

struct Moments {
  Tensor momentum;  // f32 [elements]  running mean of the gradient
  Tensor variance;  // f32 [elements]  running mean of its square; neither is bias-corrected

  static Moments zeros(const ParameterTable& table);
  void save(StateWriter&) const;
  void load(const StateReader&);
  int64_t size_bytes() const { return momentum.view().size_bytes() + variance.view().size_bytes(); }
  // The size for a table that may be unallocated.
  static int64_t size_bytes_of(const ParameterTable& table) {
    return 2 * table.size_elements() * static_cast<int64_t>(sizeof(float));
  }
};

}  // namespace onebit::optim
