// How layers declare their parameters in the parameter table.
#pragma once

#include <string>
#include <vector>

#include "onebit/math/device/context.h"
#include "onebit/math/ops/linear.h"
#include "onebit/math/tensor/parameter_table.h"

namespace onebit::model {

// Indices into the parameter table. A family may do without some of them.
inline constexpr int kNoParameter = -1;
struct LinearParameters {
  int weight = kNoParameter;  // [out, in]  with weight decay
  int bias = kNoParameter;    // [out]      without
};
struct NormParameters {
  int gamma = kNoParameter, beta = kNoParameter;  // [hidden]  both without weight decay
};

// Empty without the parameter.
ConstView value_or_none(const ParameterTable& table, int parameter);
ConstView compute_value_or_none(const ParameterTable& table, int parameter);
View gradient_or_none(const ParameterTable& table, int parameter);

// `name` excludes ".weight". Biases are initialised to 0. With `parts`, files store the matrix as
// several tensors of equal consecutive rows: "NAME.PART.weight". The layer computes the weight's
// gradient by weight_gradient().
LinearParameters declare_linear(ParameterTable& table, const std::string& name, int64_t out,
                                int64_t in, double stddev, bool has_bias = true,
                                const std::vector<std::string>& parts = {});
// "NAME.weight" and "NAME.bias", initialised to 1 and 0.
NormParameters declare_norm(ParameterTable& table, const std::string& name, int64_t hidden,
                            bool has_beta = true);

// What a layer's backward pass does to the gradient of `weight` [out, in]: adds to it, or
// overwrites it when it is stale (tensor/parameter_table.h). `grad_bias` may be empty.
ops::LinearBackwardWeight weight_gradient(ParameterTable& table, int weight, ConstView grad_y,
                                          ConstView x, View grad_bias = {});

// The bias in the type that the device's products add to results of the compute type: as computed
// with on CUDA, where cuBLASLt would need it rounded by a kernel before every product, and f32 on
// CPUs. Empty without a bias.
ConstView bias_to_add(const Context& context, const ParameterTable& table, int bias);

}  // namespace onebit::model
