// What this program offers on this machine, and how fast it computes there.
#pragma once

#include "onebit/math/device/context.h"
#include "onebit/training/costs/machine_check.h"

namespace onebit::costs {

// The facts that need no measurement. f32, bf16 and memory are 0.
ProgramFacts program_facts(Context& context);
// Measures f32, bf16 (where it is native) and memory, which takes two seconds.
void measure_speed(Context& context, ProgramFacts& program);

}  // namespace onebit::costs
