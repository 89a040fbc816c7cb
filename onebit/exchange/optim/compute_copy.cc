#include "onebit/exchange/optim/compute_copy.h"

#include "onebit/math/ops/elementwise.h"

namespace onebit::optim {

void refresh_compute_copy(Context& context, const ParameterTable& table) {
  if (table.compute_type() == DType::kF32) return;
  ops::cast(context, {.from = table.values(), .to = table.compute_values()});
}

}  // namespace onebit::optim
