// Decides from the hosts of the ranks whether the compressed exchange of a run has one level or
// two.
#pragma once

#include <string>

#include "onebit/exchange/comm/nodes.h"
#include "onebit/exchange/engine/config.h"

namespace onebit::engine {

struct LevelsChoice {
  bool two = false;
  std::string text;  // for the start table: what was chosen and why. Empty: no row
};

// The result is the same on every rank. Error: two levels are requested, and the ranks' hosts or
// the number of elements do not allow them.
LevelsChoice choose_levels(const EngineConfig& config, const comm::Nodes& nodes, int64_t elements);

}  // namespace onebit::engine
