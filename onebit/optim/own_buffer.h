// A saved buffer that belongs to one rank.
#pragma once

#include <string>
#include <vector>

#include "onebit/params/state.h"

namespace onebit::optim {

// The buffer `name` that `rank` saved. Error: it has not the `elements` that this model needs.
std::vector<float> own_buffer(const params::StateReader&, const std::string& name, int rank,
                              size_t elements);

}  // namespace onebit::optim
