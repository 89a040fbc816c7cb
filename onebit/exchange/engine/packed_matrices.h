// Copies of a model's matrices in the layout of oneDNN's products, for steps of several
// micro-batches: the micro-batches share what a product would otherwise do each time.
#pragma once

#include <cstdint>
#include <vector>

#include "onebit/math/device/constant_weights.h"
#include "onebit/math/tensor/parameter_table.h"

namespace onebit::engine {

class PackedMatrices {
 public:
  // No matrix is packed.
  PackedMatrices() = default;
  // Covers the compute values of every matrix except lookup tables, whose product takes a few rows
  // (the masked tokens). Copies are made when a product first needs them.
  PackedMatrices(Context& context, const ParameterTable& table);

  // The compute values were overwritten. Must be called before the next product.
  void changed();

  // Bytes of the copies in both directions, forward and backward, without the layout's padding.
  static int64_t bytes(const ParameterTable& table, DType compute);

 private:
  std::vector<ConstantWeights> matrices_;
};

}  // namespace onebit::engine
