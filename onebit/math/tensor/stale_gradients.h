// Gradients that need not be zero before a backward pass adds to them, because it overwrites them
// first: those of matrices, which are nearly all elements. Filling them with zeros and reading them
// again would cost two passes over memory.
#pragma once

#include <cstdint>
#include <vector>

#include "onebit/math/tensor/range.h"

namespace onebit {

// Knows which parts of the flat buffer of gradients are stale: still those of the update before.
// Nothing is stale until begin_update(): without it every pass adds.
class StaleGradients {
 public:
  // The layers ask take() before anything is added to the gradient of this parameter. The range
  // includes the gap behind the parameter. Two layers may cover the same parameter.
  void cover(int parameter, Range range);

  // The caller zeroes the gradients before it adds to them, for example with PyTorch's zero_grad():
  // from now on nothing is stale, and begin_update() has nothing to be zeroed.
  void leave_to_caller() { is_left_to_caller_ = true; }

  // From here on what is covered is stale. The ranges that are not covered, of a buffer of this
  // many elements: to be zeroed now.
  std::vector<Range> begin_update(int64_t size_elements);

  // Whether the parameter's gradient is stale, thus to be overwritten; not any more then.
  bool take(int parameter);
  // The stale ranges that begin in `within`, which is whole parameters: to be zeroed, as no pass
  // has written them. Not stale any more then.
  std::vector<Range> take(Range within);

 private:
  struct Covered {
    int parameter;
    Range range;
    bool is_stale;
  };
  std::vector<Covered> covered_;  // by range
  bool is_left_to_caller_ = false;
};

}  // namespace onebit
