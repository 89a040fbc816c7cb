// What the state in checkpoints lacks that were made before 0/1 Adam and the exchange on two levels
// were there: those of runs with Adam, LAMB, 1-bit Adam and 1-bit LAMB, which continue. Keys that
// format version 1 has been given since then are completed here and nowhere else
// (docs/checkpoint-format.md, "Compatibility").
#pragma once

#include <cstdint>

#include "onebit/base/json_fwd.h"

namespace onebit::optim {

// The counters of a variance level that exchanged in every one of its `exchanges` updates, of which
// `turns` are a cycle: null is completed.
Json completed_turns(Json turns_state, int64_t exchanges, int64_t turns);

// The cycles of a noise ratio that gave each cycle the weight 1 / `cycles`: null is completed.
int64_t completed_cycles(const Json& saved, int64_t cycles);

// The gradients that a clipper's average was of: without the key, as many as now.
int completed_sources(const Json& clipper, int sources);

}  // namespace onebit::optim
