#include "onebit/ground/base/random_id.h"

#include <random>

namespace onebit {

uint64_t random_id() {
  std::random_device source;
  return (uint64_t{source()} << 32) ^ source();
}

}  // namespace onebit
