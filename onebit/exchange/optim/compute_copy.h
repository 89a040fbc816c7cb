// The copy of a table's values in the compute type (tensor/parameter_table.h).
#pragma once

#include "onebit/math/device/context.h"
#include "onebit/math/tensor/parameter_table.h"

namespace onebit::optim {

// Recomputes the whole copy, if there is one, after values were set otherwise than by an update.
void refresh_compute_copy(Context& context, const ParameterTable& table);

}  // namespace onebit::optim
