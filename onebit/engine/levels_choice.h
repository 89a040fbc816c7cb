// Whether the compressed exchange of a run has one level or two, decided from the hosts of its
// ranks.
#pragma once

#include <string>

#include "onebit/comm/nodes.h"
#include "onebit/engine/config.h"

namespace onebit::engine {

struct LevelsChoice {
  bool two = false;
  std::string text;  // for the table at the start: what was chosen and why; empty: nothing to say
};

// The same on every rank. Error: two levels are asked for, and the ranks' hosts or the number of
// elements do not allow them.
LevelsChoice choose_levels(const EngineConfig& config, const comm::Nodes& nodes, int64_t elements);

}  // namespace onebit::engine
