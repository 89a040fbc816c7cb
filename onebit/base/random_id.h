// Numbers by which processes know each other again.
#pragma once

#include <cstdint>

namespace onebit {

// From the system's entropy: no two are equal, and no run repeats them.
uint64_t random_id();

}  // namespace onebit
