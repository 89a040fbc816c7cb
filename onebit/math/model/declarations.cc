#include "onebit/math/model/declarations.h"

namespace onebit::model {

LinearParameters declare_linear(ParameterTable& table, const std::string& name, int64_t out,
                                int64_t in, double stddev, const std::vector<std::string>& parts) {
  ParameterDeclaration weight{.name = name + ".weight",
                              .shape = {out, in},
                              .init = InitialValue::kNormal,
                              .init_stddev = stddev,
                              .decay = true};
  ParameterDeclaration bias{.name = name + ".bias", .shape = {out}};
  for (const std::string& part : parts) {
    weight.parts.push_back(name + "." + part + ".weight");
    bias.parts.push_back(name + "." + part + ".bias");
  }
  const int weight_index = table.add(std::move(weight));
  table.overwrite_gradient(weight_index);
  return {weight_index, table.add(std::move(bias))};
}

NormParameters declare_norm(ParameterTable& table, const std::string& name, int64_t hidden) {
  const int gamma =
      table.add({.name = name + ".weight", .shape = {hidden}, .init = InitialValue::kOnes});
  return {gamma, table.add({.name = name + ".bias", .shape = {hidden}})};
}

ops::LinearBackwardWeight weight_gradient(ParameterTable& table, int weight, ConstView grad_y,
                                          ConstView x, View grad_bias) {
  return {.grad_y = grad_y,
          .x = x,
          .grad_weight = table.gradient(weight),
          .overwrite_weight = table.stale_gradients().take(weight),
          .grad_bias = grad_bias};
}

ConstView bias_to_add(const Context& context, const ParameterTable& table, int bias) {
  const bool is_rounded = context.device().type == DeviceType::kCuda;
  return is_rounded ? table.compute_value(bias) : table.value(bias);
}

}  // namespace onebit::model
