// Texts that ranks exchange: facts, and errors.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "onebit/comm/communicator.h"

namespace onebit::engine {

// The texts of all ranks, in their order. Collective.
std::vector<std::string> gather_texts(comm::Communicator& communicator, const std::string& mine);

// Runs `work`; afterwards every rank knows whether all of them succeeded. `what` begins the error
// ("checkpoint not written"), which is that of the lowest rank that failed, on every rank.
// Collective.
void run_on_all(comm::Communicator& communicator, const char* what,
                const std::function<void()>& work);

}  // namespace onebit::engine
