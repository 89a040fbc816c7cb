// Which optimizer a saved state belongs to.
#pragma once

#include <string>

#include "onebit/params/state.h"

namespace onebit::optim {

void save_state_name(params::StateWriter&, const std::string& name);
// Error: the state is another optimizer's, with both names.
void check_state_name(const params::StateReader&, const std::string& name);

}  // namespace onebit::optim
