// The copy of a table's values in the compute type (params/table.h).
#pragma once

#include "onebit/math/device/context.h"
#include "onebit/math/params/table.h"

namespace onebit::optim {

// Recomputes the whole copy, if there is one, after values were set otherwise than by an update.
void refresh_compute_copy(Context& context, const params::Table& table);

}  // namespace onebit::optim
