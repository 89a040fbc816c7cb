// Completes the state of checkpoints made before 0/1 Adam and the exchange on two levels existed,
// so that runs with Adam, LAMB, 1-bit Adam and 1-bit LAMB continue. Keys that were added to format
// version 1 since then are completed here and nowhere else (docs/checkpoint-format.md,
// "Compatibility").
#pragma once

#include <cstdint>

#include "onebit/ground/base/json_fwd.h"

namespace onebit::optim {

// The counters of a variance level that exchanged in each of its `exchanges` updates, with cycles
// of `turns`; only replaces null.
Json completed_turns(Json turns_state, int64_t exchanges, int64_t turns);

// The cycles of a noise ratio that gave each cycle the weight 1 / `cycles`; only replaces null.
int64_t completed_cycles(const Json& saved, int64_t cycles);

// The number of gradients in a clipper's average: the current number if the key is absent.
int completed_sources(const Json& clipper, int sources);

}  // namespace onebit::optim
