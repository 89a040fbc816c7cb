// Numbers by which processes know each other again.
#pragma once

#include <cstdint>

namespace onebit {

// 64 bits of the system's entropy, so that two processes hardly ever draw the same.
uint64_t random_id();

}  // namespace onebit
