// Texts that ranks exchange: facts and errors.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "onebit/exchange/comm/communicator.h"

namespace onebit::checkpoint {

// The texts of all ranks, in rank order. Collective.
std::vector<std::string> gather_texts(comm::Communicator& communicator, const std::string& mine);

// Runs `work`; afterwards every rank knows whether all of them succeeded. If not, every rank throws
// the error of the lowest rank that failed, prefixed by `what` ("checkpoint not written").
// Collective.
void run_on_all(comm::Communicator& communicator, const char* what,
                const std::function<void()>& work);

}  // namespace onebit::checkpoint
