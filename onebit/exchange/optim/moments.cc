#include "onebit/exchange/optim/moments.h"

namespace onebit::optim {

Moments Moments::zeros(const ParameterTable& table) {
  const Shape shape{table.size_elements()};
  return {.momentum = Tensor::zeros(table.device(), DType::kF32, shape),
          .variance = Tensor::zeros(table.device(), DType::kF32, shape)};
}

void Moments::save(StateWriter& writer) const {
  writer.replicated("momentum", momentum.view());
  writer.replicated("variance", variance.view());
}

void Moments::load(const StateReader& reader) {
  reader.replicated("momentum", momentum.view());
  reader.replicated("variance", variance.view());
}

}  // namespace onebit::optim
