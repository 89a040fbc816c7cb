#include "onebit/math/model/declarations.h"

namespace onebit::model {

ConstView value_or_none(const ParameterTable& table, int parameter) {
  return parameter == kNoParameter ? View() : table.value(parameter);
}

ConstView compute_value_or_none(const ParameterTable& table, int parameter) {
  return parameter == kNoParameter ? View() : table.compute_value(parameter);
}

View gradient_or_none(const ParameterTable& table, int parameter) {
  return parameter == kNoParameter ? View() : table.gradient(parameter);
}

LinearParameters declare_linear(ParameterTable& table, const std::string& name, int64_t out,
                                int64_t in, double stddev, bool has_bias,
                                const std::vector<std::string>& parts) {
  ParameterDeclaration weight{.name = name + ".weight",
                              .shape = {out, in},
                              .init = InitialValue::kNormal,
                              .init_stddev = stddev,
                              .decay = true,
                              .only_multiplied = true};
  ParameterDeclaration bias{.name = name + ".bias", .shape = {out}};
  for (const std::string& part : parts) {
    weight.parts.push_back(name + "." + part + ".weight");
    bias.parts.push_back(name + "." + part + ".bias");
  }
  const int weight_index = table.add(std::move(weight));
  table.overwrite_gradient(weight_index);
  return {weight_index, has_bias ? table.add(std::move(bias)) : kNoParameter};
}

NormParameters declare_norm(ParameterTable& table, const std::string& name, int64_t hidden,
                            bool has_beta) {
  const int gamma =
      table.add({.name = name + ".weight", .shape = {hidden}, .init = InitialValue::kOnes});
  return {gamma, has_beta ? table.add({.name = name + ".bias", .shape = {hidden}}) : kNoParameter};
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
  return is_rounded ? compute_value_or_none(table, bias) : value_or_none(table, bias);
}

}  // namespace onebit::model
