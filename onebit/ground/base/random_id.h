// Random numbers by which processes identify themselves.
#pragma once

#include <cstdint>

namespace onebit {

// 64 bits of the system's entropy, so that two processes practically never draw the same number.
uint64_t random_id();

}  // namespace onebit
