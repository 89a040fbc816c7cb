// How layers declare their parameters in the parameter table.
#pragma once

#include <string>
#include <vector>

#include "onebit/math/device/context.h"
#include "onebit/math/ops/linear.h"
#include "onebit/math/tensor/parameter_table.h"

namespace onebit::model {

// Indices into the parameter table.
struct LinearParameters {
  int weight = 0;  // [out, in]  with weight decay
  int bias = 0;    // [out]      without
};
struct NormParameters {
  int gamma = 0, beta = 0;  // [hidden]  both without weight decay
};

// `name` excludes ".weight"; biases are initialised to 0. With `parts`, files store the matrix as
// several tensors of equal consecutive rows: "NAME.PART.weight". The layer computes the weight's
// gradient by weight_gradient().
LinearParameters declare_linear(ParameterTable& table, const std::string& name, int64_t out,
                                int64_t in, double stddev,
                                const std::vector<std::string>& parts = {});
// "NAME.weight" and "NAME.bias", initialised to 1 and 0.
NormParameters declare_norm(ParameterTable& table, const std::string& name, int64_t hidden);

// What a layer's backward pass does to the gradient of `weight` [out, in]: adds to it, or
// overwrites it when it is stale (tensor/parameter_table.h). `grad_bias` may be empty.
ops::LinearBackwardWeight weight_gradient(ParameterTable& table, int weight, ConstView grad_y,
                                          ConstView x, View grad_bias = {});

// The bias in the type that the device's products add to results of the compute type: as computed
// with on CUDA, where cuBLASLt would need it rounded by a kernel before every product; f32 on CPUs.
ConstView bias_to_add(const Context& context, const ParameterTable& table, int bias);

}  // namespace onebit::model
